"""Reading queues that others follow, without gates (ipc/queue_replica/original.c)."""

from __future__ import annotations

from dataclasses import dataclass
from mmap import mmap
from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import EMPTY, TOO_SMALL
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import error_for

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.queue.queue import Queue

ROOM = 1 << 20


@dataclass(frozen=True, slots=True)
class Read:
    memory: memoryview
    """The records, until the next read."""
    messages: int
    whole: bool
    """With it the reader has all that stood in the queues at one moment."""
    more: bool
    """There was no room for all of it."""


@dataclass(frozen=True, slots=True)
class Stands:
    identity: bytes
    """Of the queue: made again, it has another."""
    head: int
    tail: int
    slots: int
    next: int
    """What is read next."""
    pages: bool


class Originals(Closable):
    """Of one thread at a time.  Close it before its broker."""

    def __init__(self, broker: Broker, *, room: int = ROOM) -> None:
        made = ffi.new("sb_original **")
        _check(lib.sb_original_open(broker._connection, made))
        self._original: Any = made[0]
        self._room = ffi.from_buffer("int64_t[]", mmap(-1, room))
        self._batch = ffi.new("sb_original_batch *")
        self._queues: dict[int, Queue] = {}

    def add(self, queue: Queue, number: int, position: int) -> None:
        """Under this number, from this position on."""
        _check(lib.sb_original_add(self._original, queue._queue, number, position))
        self._queues[number] = queue

    def drop(self, number: int) -> None:
        lib.sb_original_drop(self._original, number)
        self._queues.pop(number, None)

    def stands(self, number: int) -> Stands:
        """NotFound: it was deleted."""
        place = ffi.new("sb_original_place *")
        _check(lib.sb_original_stands(self._original, number, place))
        halves = (half.to_bytes(8, "little", signed=True) for half in (place.high, place.low))
        return Stands(
            b"".join(halves), place.head, place.tail, place.slots, place.next, bool(place.pages)
        )

    @property
    def is_held(self) -> bool:
        """Nothing was read because a transaction stands half way."""
        return bool(self._batch.held)

    def read(self) -> Read | None:
        """What has changed since, or None."""
        return self._read(self._room, len(self._room) * 8)

    def _read(self, buffer: Any, room: int) -> Read | None:
        batch = self._batch
        batch.buffer, batch.room = buffer, room
        code: int = lib.sb_original_read(self._original, batch)
        if code == EMPTY:
            return None
        if code == TOO_SMALL:
            needed = int(batch.needed) + 4096
            return self._read(ffi.new("int64_t[]", needed // 8), needed & -8)
        _check(code)
        memory = memoryview(ffi.buffer(buffer, batch.bytes))
        return Read(memory, batch.messages, bool(batch.whole), bool(batch.more))

    def close(self) -> None:
        if self._original is not None:
            lib.sb_original_close(self._original)
            self._original = None
            self._queues.clear()


def copied(queue: Queue, below: int) -> None:
    """Confirms of what is published to this queue wait for replicas that have all below this
    position; -1: for none."""
    _check(lib.sb_original_copied(queue._queue, below))


def _check(code: int) -> None:
    if code < 0:
        raise error_for(code, "queues that others follow", ffi.errno, detail_of(code))
