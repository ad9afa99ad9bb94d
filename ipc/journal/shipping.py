"""A journal's frames on their way to another one (shipped.c, history.py)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from shmbroker.core.codes import TOO_LARGE
from shmbroker.ipc._native import ffi, lib
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


def shipped(frames: memoryview) -> Iterator[tuple[Place, memoryview]]:
    """Each frame of what `Tail` or `History` has read, as it lies in a segment."""
    at = 0
    while at < len(frames):
        number, _, epoch, seal, chain, size = SHIPPED.unpack_from(frames, at)
        at += SHIPPED.size
        yield Place(number, epoch, seal, chain), frames[at : at + size]
        at += size


class Buffer:
    def __init__(self) -> None:
        self.grow(ROOM)

    @property
    def address(self) -> int:
        return int(ffi.cast("intptr_t", self.memory))

    def grow(self, wanted: int) -> None:
        self.memory, self.room = ffi.new("char[]", wanted), wanted
        self.whole = memoryview(ffi.buffer(self.memory))

    def view(self, length: int) -> memoryview:
        """What is there, until it is filled again."""
        return self.whole[:length]

    def shrink(self) -> None:
        if self.room > ROOM:
            self.grow(ROOM)


class Tail:
    """What an end reads, as it is shipped.  For one thread, that of the end."""

    def __init__(self, end: End, chain: int) -> None:
        """`chain`: of the frame after which the end was attached."""
        self._end = end
        self._buffer = Buffer()
        self._tail = ffi.new("sb_tail *")
        self._tail.end, self._tail.chain = end._attached(), chain
        self.last = 0
        """The number of the frame that was read last."""

    def read(self) -> memoryview:
        """Frames, empty if there are none, until the next call; ConnectionClosed as `End.read`."""
        buffer = self._buffer
        if buffer.room > ROOM:
            buffer.shrink()
        code: int = lib.sb_tail_read(self._tail, buffer.memory, buffer.room)
        if code == TOO_LARGE:
            buffer.grow(self._tail.held.bytes + ffi.sizeof("sb_shipped"))
            code = lib.sb_tail_read(self._tail, buffer.memory, buffer.room)
        if code < 0:
            self._end._check(code)
        self.last = self._tail.last
        return buffer.whole[:code]

    def close(self) -> None:
        lib.sb_tail_close(self._tail)
