"""Following queues behind gates of one's own, a batch of records a call (ipc/follower/batch.c)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap
from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import EMPTY, INTERRUPTED, OK, TOO_SMALL
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import Error, error_for
from shmbroker.ipc.base.names import name_bytes
from shmbroker.ipc.base.timeout import nanoseconds
from shmbroker.ipc.follower.header import KINDS
from shmbroker.ipc.journal.stored import Stored, stored

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.queue.queue import Queue

ROOM = 1 << 20
FOLLOWS = ("added", "durable", "all")


@dataclass(frozen=True, slots=True)
class Batch:
    memory: memoryview
    """The records, until the next read."""
    records: int
    messages: int
    whole: bool
    """Of a moment: this is the end of it."""

    def __iter__(self) -> Iterator[Stored]:
        return stored(self.memory)


@dataclass(frozen=True, slots=True)
class Place:
    gate: int
    next: int
    """What is read next."""
    end: int
    identity: bytes
    """Of the queue: made again, it has another."""


class Follower(Closable):
    """Of one thread at a time.  Close it before its broker."""

    def __init__(
        self,
        broker: Broker,
        name: str,
        *,
        kind: str = "link",
        lasting: bool = False,
        follows: str = "added",
        from_now: bool = False,
        tells: bool = False,
        skips: bool = False,
        room: int = ROOM,
    ) -> None:
        """`skips`: messages that are done with already are passed over."""
        self.name = name
        self._broker = broker
        self._name = ffi.new("char[]", name_bytes(name))
        options = ffi.new("sb_follower_options *")
        options.name = self._name
        options.kind = KINDS.index(kind)
        options.follows = (lib.SB_FOLLOW_ADDED, lib.SB_FOLLOW_DURABLE, lib.SB_FOLLOW_ALL)[
            FOLLOWS.index(follows)
        ]
        options.lasting, options.from_now = lasting, from_now
        options.tells, options.skips = tells, skips
        made = ffi.new("sb_follower **")
        self._check(lib.sb_follower_open(broker._connection, options, made))
        self._follower: Any = made[0]
        # a mapping: memory that was not used before, of which only what is written takes room
        self._room = ffi.from_buffer("int64_t[]", mmap(-1, room))
        self._batch = ffi.new("sb_follower_batch *")
        self._place = ffi.new("sb_follower_place *")

    def _error(self, code: int) -> Error:
        return error_for(code, f"follower {self.name!r}", ffi.errno, detail_of(code))

    def _check(self, code: int) -> int:
        if code < 0:
            raise self._error(code)
        return code

    def add(self, queue: Queue) -> int:
        """Follow this queue too: its number in the records."""
        return self._check(lib.sb_follower_add(self._follower, queue._queue))

    def read(self, *, retired: bool = False, moment: bool = False) -> Batch | None:
        """What came since, or None.  TooSmall if there is no room for one record."""
        return self._read(self._room, len(self._room) * 8, 0, retired=retired, moment=moment)

    def read_some(self, messages: int, size: int) -> Batch | None:
        """Not more than that; but one message at least, however large, if there is one."""
        room = max(8, min(size, len(self._room) * 8))
        return self._read(self._room, room, messages, grows=True)

    def _read(
        self,
        buffer: Any,
        room: int,
        most: int,
        *,
        retired: bool = False,
        moment: bool = False,
        grows: bool = False,
    ) -> Batch | None:
        batch = self._batch
        batch.buffer, batch.room, batch.most = buffer, room & -8, most
        batch.retired, batch.moment = retired, moment
        code: int = lib.sb_follower_read(self._follower, batch)
        if code == EMPTY:
            return None
        if code == TOO_SMALL and grows:
            needed = batch.needed
            return self._read(ffi.new("int64_t[]", needed // 8), needed, 1)
        self._check(code)
        memory = memoryview(ffi.buffer(buffer, batch.bytes))
        return Batch(memory, batch.records, batch.messages, bool(batch.whole))

    def stands(self, number: int) -> Place:
        """Of this queue."""
        place = ffi.new("sb_follower_place *")
        self._check(lib.sb_follower_stands(self._follower, number, place))
        halves = (half.to_bytes(8, "little", signed=True) for half in (place.high, place.low))
        return Place(place.gate, place.next, place.end, b"".join(halves))

    def next(self, number: int) -> int:
        """What is read next of this queue."""
        place = self._place
        self._check(lib.sb_follower_stands(self._follower, number, place))
        following: int = place.next
        return following

    def retire(self, number: int, position: int) -> None:
        """release, of a queue that nobody else takes from: what nobody has is done with."""
        self._check(lib.sb_follower_retire(self._follower, number, position))

    def release(self, number: int, position: int) -> None:
        """All below the position of this queue is dealt with."""
        self._check(lib.sb_follower_release(self._follower, number, position))

    def release_all(self) -> None:
        """All that was read is."""
        self._check(lib.sb_follower_release_all(self._follower))

    def seek(self, number: int, position: int) -> None:
        """Read on from there."""
        self._check(lib.sb_follower_seek(self._follower, number, position))

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep until there may be something to read; False: not in time."""
        code: int = lib.sb_follower_wait(self._follower, ffi.NULL, 0, nanoseconds(timeout))
        if code not in (OK, EMPTY, INTERRUPTED):
            raise self._error(code)
        return code == OK

    def close(self, *, leaves: bool = False) -> None:
        """Lasting gates stay where they are, unless it leaves."""
        if self._follower is not None:
            lib.sb_follower_close(self._follower, leaves)
            self._follower = None
