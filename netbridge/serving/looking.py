"""What changes nothing: lists, statistics, and messages that are looked at and not taken."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
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
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.schedule.scheduled import ScheduledMessage, ring_of
from shmbroker.ipc.selector.copied import matches_copied
from shmbroker.ipc.selector.selector import Selector
from shmbroker.netbridge.remote.body import asked, named, told
from shmbroker.netbridge.serving.answer import Answer
from shmbroker.netbridge.serving.commit import MARKS
from shmbroker.netbridge.serving.declaring import checked
from shmbroker.netbridge.serving.naming import is_held, queue_named
from shmbroker.netbridge.wire.frame import Command

TAKEN, UNCONFIRMED, TAKEN_BY_SHIFT = 1, 2, 8
_HEAD = Struct("<4L2Q")
_WORD = Struct("<q")
BROWSE_BYTES = 1 << 20
"""Of an answer, but for its last message."""

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
        queue = broker.queue(queue_named(fields))
        if at == "value":
            return Answer(body=asked(found=_value(queue, named(fields, "key"))))
        look = checked("look", at, OF_A_QUEUE)
        return Answer(body=asked(found=look(queue)))
    checked("look", at, dict.fromkeys(OF_THE_VHOST))
    found = [
        each
        for each in getattr(broker, str(at))()
        if (name := getattr(each, "name", "")) != MARKS and not is_held(name)
    ]
    return Answer(body=asked(found=[asdict(each) for each in found]))


# --- messages -------------------------------------------------------------------------------------


def browsed(broker: Broker, command: Command) -> Answer:
    """A page: so many messages, or so many bytes, and where the next page begins."""
    fields = told(command.body)
    queue = broker.queue(queue_named(fields))
    ring = ring_of(queue) if fields.get("scheduled") else queue._queue
    if not ring:
        return Answer()
    text = fields.get("selector")
    selector = None if text is None else Selector(text)
    records: list[bytes] = []
    size, where = 0, fields.get("position") or 0
    most = max(1, command.count)
    for message, chunk in _from(queue, ring, where, bool(fields.get("unconfirmed"))):
        where = message.position + 1
        if selector is None or matches_copied(selector, message):
            records.append(record(message, chunk))
            size += len(records[-1])
        if len(records) >= most or size >= BROWSE_BYTES:
            break
    return Answer(len(records), where, b"".join(records))


def _from(
    queue: Queue, ring: Any, start: int, unconfirmed: bool
) -> Iterator[tuple[CopiedMessage, bytes]]:
    stands = queue._told(ring)
    room = Room()
    for position in range(max(stands.head, start), stands.tail):
        found = queue._look(ring, position, room, unconfirmed)
        if found is not None:
            yield found
