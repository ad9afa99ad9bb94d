"""Retry: dead letters go back to the queues that they came from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shmbroker.ipc.base.errors import Empty, InvalidArgument, NotFound, QueueFull

if TYPE_CHECKING:
    from shmbroker.ipc.message.message import Message
    from shmbroker.ipc.queue.queue import Queue

NOTE = "dead."
KEPT = ("dead.count", "dead.first")
"""So that the next death counts on."""


@dataclass(frozen=True, slots=True)
class Retried:
    sent: int
    stayed: dict[str, int]
    """How many are still there, by the reason."""


def _send_back(dead: Queue, message: Message) -> str:
    """It is published there before it is acknowledged here; why it stays, or ""."""
    properties: dict[str, Any] = message.properties
    origin = properties.get("dead.origin")
    if not isinstance(origin, str):
        return "it does not say where it comes from"
    kept = {k: v for k, v in properties.items() if k in KEPT or not k.startswith(NOTE)}
    try:
        dead._broker.queue(origin).publish(
            message.view,
            key=message.key,
            properties=kept,
            priority=message.priority,
            timeout=0,
        )
    except NotFound:
        return f"there is no queue {origin!r}"
    except QueueFull:
        return f"queue {origin!r} is full"
    message.ack()
    return ""


def retry(dead: Queue, limit: int | None) -> Retried:
    """Those that are there now, once each, but no more than the limit."""
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise InvalidArgument(f"limit is a number of messages or None, not {limit!r}")
    there = dead.statistics().depth
    sent, stayed = 0, Counter[str]()
    held: list[Message] = []  # until the end, or we would take them again
    try:
        for _ in range(there if limit is None else min(there, limit)):
            message = dead.get_nowait()
            why = _send_back(dead, message)
            if why:
                stayed[why] += 1
                held.append(message)
            else:
                sent += 1
    except Empty:
        pass
    finally:
        for message in reversed(held):
            message.give_back()
    return Retried(sent, dict(stayed))
