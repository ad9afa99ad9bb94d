"""What changes nothing: lists, statistics, and messages that are looked at and not taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from struct import Struct
from typing import Any

from shmbroker.core.layout import (
    CHUNK_EXPIRY_AT,
    POSITION_MASK,
    RECORD_IS_MESSAGE,
    RECORD_KIND_SHIFT,
)
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.room import Room
from shmbroker.ipc.queue.publishing import checked_position
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.schedule.scheduled import ScheduledMessage, ring_of
from shmbroker.ipc.selector.copied import matches_copied
from shmbroker.ipc.selector.selector import Selector
from shmbroker.netbridge.remote.body import asked, named, told
from shmbroker.netbridge.serving.answer import Answer
from shmbroker.netbridge.serving.declaring import checked
from shmbroker.netbridge.serving.naming import is_closed, queue_named
from shmbroker.netbridge.wire.frame import Command

TAKEN, UNCONFIRMED, TAKEN_BY_SHIFT = 1, 2, 8
_HEAD = Struct("<4L2Q")
_WORD = Struct("<q")
BROWSE_BYTES = 1 << 20
"""Of an answer, but for its last message."""
BROWSE_POSITIONS = 1000
"""That are looked at in one piece."""

OF_THE_VHOST = (
    "queues", "exchanges", "bindings", "subscriptions", "patterns", "participants", "errors",
)  # fmt: skip


def record(message: CopiedMessage, chunk: bytes) -> bytes:
    """As it is delivered; of one that is looked at the head's `crc` says who has it."""
    if message.expires_ns:
        left = max(1, message.expires_ns - time.monotonic_ns())
        chunk = chunk[:CHUNK_EXPIRY_AT] + _WORD.pack(left) + chunk[CHUNK_EXPIRY_AT + 8 :]
    where = message.position & POSITION_MASK | RECORD_IS_MESSAGE << RECORD_KIND_SHIFT
    flags = TAKEN * message.is_taken | UNCONFIRMED * (not message.is_confirmed)
    flags |= (message.taken_by or 0) << TAKEN_BY_SHIFT
    head = _HEAD.pack(flags, 0, len(chunk), message.deliveries, 0, where)
    return b"".join((head, chunk, bytes(-len(chunk) & 7)))


# --- lists and statistics -------------------------------------------------------------------------


def _statistics(queue: Queue) -> dict[str, Any]:
    return asdict(queue.statistics())


def _value(queue: Queue, key: str) -> bytes | None:
    """The record of the newest message with this key."""
    newest = queue.value(key)
    if newest is None:
        return None
    found = queue._look(queue._queue, newest.position, Room(), unconfirmed=True)
    return None if found is None else record(*found)


def _scheduled(each: ScheduledMessage) -> dict[str, Any]:
    return asdict(each) | {"deliver_at": each.deliver_at.timestamp()}


OF_A_QUEUE: dict[str, Callable[[Queue], Any]] = {
    "statistics": _statistics,
    "length": len,
    "published": lambda queue: queue.published,
    "confirmed": lambda queue: queue.confirmed,
    "level": lambda queue: queue.level,
    "explain": lambda queue: {name: asdict(each) for name, each in queue.explain().items()},
    "gates": lambda queue: [asdict(each) for each in queue.gates()],
    "origins": lambda queue: [asdict(each) for each in queue.origins()],
    "groups": lambda queue: [asdict(each) for each in queue.groups()],
    "holders": lambda queue: [asdict(each) for each in queue.holders()],
    "scheduled": lambda queue: [_scheduled(each) for each in queue.scheduled()],
}


def looked(broker: Broker, command: Command) -> Answer:
    fields = told(command.body)
    at = fields.get("at")
    if "queue" in fields:
        queue = broker._queue_there(queue_named(fields))
        if at == "value":
            return Answer(body=asked(found=_value(queue, named(fields, "key"))))
        look = checked("look", at, OF_A_QUEUE)
        return Answer(body=asked(found=look(queue)))
    checked("look", at, dict.fromkeys(OF_THE_VHOST))
    found = [
        each
        for each in getattr(broker, str(at))()
        if not is_closed(getattr(each, "name", ""))
    ]
    return Answer(body=asked(found=[asdict(each) for each in found]))


# --- messages -------------------------------------------------------------------------------------


class Browse:
    """A page: so many messages, or so many bytes, and where the next page begins.

    It is looked for in pieces, with the turns of others in between: few messages may fit its
    selector.
    """

    def __init__(self, broker: Broker, command: Command) -> None:
        fields = told(command.body)
        self._queue = broker._queue_there(queue_named(fields))
        self._ring = ring_of(self._queue) if fields.get("scheduled") else self._queue._queue
        self._is_unconfirmed = bool(fields.get("unconfirmed"))
        text = fields.get("selector")
        self._selector = None if text is None else Selector(text)
        self._most = max(1, command.count)
        self._records: list[bytes] = []
        self._size, self._where = 0, checked_position(fields.get("position") or 0)
        self._end = self._queue._told(self._ring).tail if self._ring else 0
        """What is published later is not of this page."""
        self.is_done = False

    @property
    def answer(self) -> Answer:
        return Answer(len(self._records), self._where, b"".join(self._records))

    def go_on(self) -> Browse:
        """The next piece."""
        if not self._ring:
            self.is_done = True
            return self
        room = Room()
        first = max(self._queue._told(self._ring).head, self._where)
        last = min(self._end, first + BROWSE_POSITIONS)
        for position in range(first, last):
            self._look(position, room)
            if len(self._records) >= self._most or self._size >= BROWSE_BYTES:
                self.is_done = True
                return self
        self.is_done = last == self._end
        return self

    def _look(self, position: int, room: Room) -> None:
        found = self._queue._look(self._ring, position, room, self._is_unconfirmed)
        self._where = position + 1
        if found is not None and (
            self._selector is None or matches_copied(self._selector, found[0])
        ):
            self._records.append(record(*found))
            self._size += len(self._records[-1])
