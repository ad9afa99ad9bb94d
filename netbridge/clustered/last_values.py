"""Queues of the broker's own that keep the last value of each key, as tables that survive it."""

from __future__ import annotations

from typing import Final

from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.queue import Queue

SLOTS: Final = 1 << 16
"""So many keys, but for an eighth of them."""


def last_values(broker: Broker, name: str, *, waits: bool = False) -> Queue:
    """`waits`: for room, where whoever publishes says so; else a full one fails at once."""
    return broker.declare_queue(
        name, slots=SLOTS, durable=True, last_value=True, replicate="all", max_deliveries=None,
        when_full="block" if waits else "fail",
    )  # fmt: skip


def newest(queue: Queue) -> dict[str, bytes]:
    """The values that there are, by their keys; those that came last are last."""
    found: dict[str, bytes] = {}
    for each in queue.browse(unconfirmed=True):
        key = each.key or ""
        found.pop(key, None)
        found[key] = bytes(each.body)
    return {key: value for key, value in found.items() if value}
