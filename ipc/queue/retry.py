"""Retry: dead letters go back to the queues that they came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import UNFINISHED
from shmbroker.core.layout import RETURNED
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import (
    ArenaFull,
    Empty,
    Error,
    GroupingTimeout,
    InvalidArgument,
    InvalidName,
    MessageTooLarge,
    NotFound,
    QueueFull,
    ReplicaReadOnly,
)
from shmbroker.ipc.message.outgoing import outgoing
from shmbroker.ipc.queue.consuming import Consuming

if TYPE_CHECKING:
    from shmbroker.ipc.message.message import Message
    from shmbroker.ipc.queue.queue import Queue

NOTE = "dead."
KEPT = ("dead.count", "dead.first")
"""So that the next death counts on."""
REFUSALS = (
    QueueFull, GroupingTimeout, ArenaFull, InvalidArgument, MessageTooLarge, ReplicaReadOnly
)  # fmt: skip
"""A queue does not take this message; others may take theirs."""


@dataclass(frozen=True, slots=True)
class Retried:
    sent: int
    stayed: dict[str, int]
    """How many are still there, by the reason."""


class _Return:
    """Messages that go back; those that cannot are held until the end, or they would come again.
    They were not delivered by that: nobody has seen them."""

    def __init__(self, dead: Queue) -> None:
        self._dead = dead
        self._held: list[Callable[[], object]] = []
        self._behind = ""
        """A queue that has lost its room to others after a message was sent there: as long as it
        has none, nothing of the connection is committed."""
        self.sent = 0
        self.stayed = Counter[str]()
        self._undecided: set[tuple[str, str | None]] = set()
        """Queues and groups: what comes behind a message that stays for this stays as well."""

    def send(self, message: Message) -> None:
        try:
            origin = message.properties.get("dead.origin")
        except InvalidArgument:
            self._hold(message._untake, "its properties cannot be read")
            return
        if not isinstance(origin, str):
            self._hold(message._untake, "it does not say where it comes from")
            return
        try:
            queue = self._dead._broker.queue(origin)
        except NotFound:
            self._hold(message._untake, f"there is no queue {origin!r}")
            return
        except InvalidName as error:
            self._hold(message._untake, str(error))
            return
        if (origin, message.group) in self._undecided:
            self._hold(message._untake, _undecided(origin))
            return
        (self._commit if lib.sb_is_durable(queue._queue) else self._publish)(queue, message)

    def _publish(self, queue: Queue, message: Message) -> None:
        """It is published there before it is acknowledged here."""
        try:
            made, _kept = _returned(message)
            queue._offer(made, 0)
        except REFUSALS as error:
            self._stays(queue, message, error)
            return
        message.ack()
        self.sent += 1

    def _commit(self, queue: Queue, message: Message) -> None:
        """One frame of the journal: on disk it is here or there, and nobody waits for that."""
        transaction = queue._broker.transaction()
        let_go: Callable[[], object] = message._untake
        try:
            transaction._waits = False
            made, kept = _returned(message)
            transaction._add(queue, "", 0, made, [kept])
            transaction.ack(message)
            let_go = transaction._undo
            code = transaction._commit(0)
            if code != UNFINISHED:
                transaction._check(code, "committing")
            self._behind = queue.name if code == UNFINISHED else ""
        except GroupingTimeout as error:
            self._stays(queue, message, error)
            return
        except REFUSALS as error:
            self._hold(let_go, _refusal(self._behind or queue.name, error))
            return
        self.sent += 1

    def _stays(self, queue: Queue, message: Message, error: Error) -> None:
        """It is in hand still."""
        if isinstance(error, GroupingTimeout):
            self._undecided.add((queue.name, message.group))
        self._hold(message._untake, _refusal(queue.name, error))

    def _hold(self, let_go: Callable[[], object], why: str) -> None:
        self.stayed[why] += 1
        self._held.append(let_go)

    def end(self) -> None:
        for let_go in reversed(self._held):
            let_go()


def _undecided(origin: str) -> str:
    return f"to which node its group of queue {origin!r} goes is not decided yet"


def _refusal(origin: str, error: Error) -> str:
    if isinstance(error, GroupingTimeout):
        return _undecided(origin)
    return f"queue {origin!r} is full" if isinstance(error, QueueFull) else str(error)


def _returned(message: Message) -> tuple[Any, tuple[Any, ...]]:
    """As it was, for C, and what must live as long: a newer value of its key is not replaced."""
    properties: dict[str, Any] = message.properties
    kept = {k: v for k, v in properties.items() if k in KEPT or not k.startswith(NOTE)}
    made = outgoing(message.view, message.key, kept, priority=message.priority)
    made[0].deliveries = RETURNED
    return made


def retry(dead: Queue, limit: int | None) -> Retried:
    """Those that are there now, once each, but no more than the limit."""
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise InvalidArgument(f"limit is a number of messages or None, not {limit!r}")
    there = dead.statistics().depth
    back = _Return(dead)
    consuming = Consuming(dead, 0, exclusive=False)
    consuming.begin()
    try:
        for _ in range(there if limit is None else min(there, limit)):
            back.send(dead.get_nowait())
    except Empty:
        pass
    finally:
        back.end()
        consuming.end()  # its groups are not ours for longer
    return Retried(back.sent, dict(back.stayed))
