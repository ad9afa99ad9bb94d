"""A journal's frames on their way to another one (shipped.c, history.c)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from shmbroker.core.codes import GONE, TOO_LARGE
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import error_for
from shmbroker.ipc.base.names import path_bytes
from shmbroker.ipc.journal.end import End
from shmbroker.ipc.journal.place import Place

ROOM: Final = 2 << 20
"""Of a buffer: what a turn of the journaler writes at most, and as much again; a frame may be
larger, of a transaction or a large message."""


SHIPPED: Final = struct.Struct("=6q")
"""sb_shipped: number, after, epoch, seal, chain, bytes."""

assert SHIPPED.size == ffi.sizeof("sb_shipped")


def place_of(told: Any) -> Place | None:
    return Place(told.number, told.epoch, told.seal, told.chain) if told.number else None


def last_places(folder: Path) -> tuple[Place | None, Place | None]:
    """Of a journal that nobody writes: its last whole frame, and the one that this repeats."""
    told = ffi.new("sb_place[2]")
    code = lib.sb_journal_last_place(path_bytes(folder), told, told + 1)
    if code < 0:
        raise error_for(code, f"journal {folder}", ffi.errno, detail_of(code))
    return place_of(told[0]), place_of(told[1])


def shipped(frames: memoryview) -> Iterator[tuple[Place, memoryview]]:
    """Each frame of what `Tail` or `History` has read, as it lies in a segment."""
    at = 0
    while at < len(frames):
        number, _, epoch, seal, chain, size = SHIPPED.unpack_from(frames, at)
        at += SHIPPED.size
        yield Place(number, epoch, seal, chain), frames[at : at + size]
        at += size


def size_of(segment: Path) -> int:
    """0: it was compacted meanwhile."""
    try:
        return segment.stat().st_size
    except FileNotFoundError:
        return 0


class _Buffer:
    def __init__(self) -> None:
        self.memory = ffi.new("char[]", ROOM)

    @property
    def room(self) -> int:
        return len(self.memory)

    def grow(self, wanted: int) -> None:
        self.memory = ffi.new("char[]", wanted)

    def view(self, length: int) -> memoryview:
        """What is there, until it is filled again."""
        return memoryview(ffi.buffer(self.memory, length))

    def shrink(self) -> None:
        if self.room > ROOM:
            self.memory = ffi.new("char[]", ROOM)


class Tail:
    """What an end reads, as it is shipped.  For one thread, that of the end."""

    def __init__(self, end: End, chain: int) -> None:
        """`chain`: of the frame after which the end was attached."""
        self._end = end
        self._buffer = _Buffer()
        self._tail = ffi.new("sb_tail *")
        self._tail.end, self._tail.chain = end._attached(), chain

    def read(self) -> memoryview:
        """Frames, empty if there are none, until the next call; ConnectionClosed as `End.read`."""
        self._buffer.shrink()
        code = self._read()
        if code == TOO_LARGE:
            self._buffer.grow(self._tail.held.bytes + ffi.sizeof("sb_shipped"))
            code = self._read()
        return self._buffer.view(self._end._check(code))

    def _read(self) -> int:
        return int(lib.sb_tail_read(self._tail, self._buffer.memory, self._buffer.room))

    @property
    def last(self) -> int:
        """The number of the frame that was read last."""
        return int(self._tail.last)

    def close(self) -> None:
        lib.sb_tail_close(self._tail)


class History(Closable):
    """All that is needed of a journal, out of its files, while it is written.  For one thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._history: Any = ffi.NULL
        made = ffi.new("sb_history **")
        self._check(lib.sb_history_open(path_bytes(folder), made))
        self._history = made[0]
        self._buffer = _Buffer()
        self._wanted = ffi.new("int64_t *")

    def _check(self, code: int) -> int:
        if code < 0:
            raise error_for(code, f"journal {self._folder}", ffi.errno, detail_of(code))
        return code

    def seek(self, place: Place) -> bool:
        """Go on behind this frame, or behind one here that repeats it; False: there is none."""
        told = ffi.new("sb_place *", (place.number, place.epoch, place.seal, place.chain))
        code: int = lib.sb_history_seek(self._history, told)
        return code != GONE and self._check(code) == 0

    def resume(self, place: Place) -> None:
        """Go on behind a frame that this journal has had, with what is needed of it."""
        told = ffi.new("sb_place *", (place.number, place.epoch, place.seal, place.chain))
        self._check(lib.sb_history_resume(self._history, told))

    def read(self) -> memoryview:
        """The next frames, empty if there are none yet, until the next call; MessageGone: they are
        in no file."""
        self._buffer.shrink()
        code = self._read()
        if code == TOO_LARGE:
            self._buffer.grow(self._wanted[0])
            code = self._read()
        return self._buffer.view(self._check(code))

    def _read(self) -> int:
        memory, room = self._buffer.memory, self._buffer.room
        return int(lib.sb_history_read(self._history, memory, room, self._wanted))

    @property
    def place(self) -> Place | None:
        """The last frame that was read or found."""
        told = ffi.new("sb_place *")
        lib.sb_history_place(self._history, told)
        return place_of(told)

    @property
    def serial(self) -> int:
        """The oldest segment that it still needs."""
        return int(lib.sb_history_serial(self._history))

    @property
    def left_bytes(self) -> int:
        """In the segments that it still needs, about: the newest is not full, and not counted."""
        *sealed, _ = sorted(self._folder.glob("*.journal")) or [self._folder]
        needed = [each for each in sealed if int(each.stem, 16) >= self.serial]
        return sum(size_of(each) for each in needed)

    def close(self) -> None:
        if self._history != ffi.NULL:
            lib.sb_history_close(self._history)
            self._history = ffi.NULL
