"""The buffer into which C copies messages, for one call at a time."""

from __future__ import annotations

from array import array
from typing import Any

from shmbroker.ipc._native import ffi

BATCH = 256
BUFFER_BYTES = 1 << 16


class Room:
    __slots__ = ("buffer", "bytes", "capacity", "ends", "messages", "room")

    def __init__(self) -> None:
        self.messages = ffi.new("sb_message[]", BATCH)
        self.ends = array("q", bytes(8 * (BATCH + 1)))
        self.room = ffi.new("sb_room *")
        self.room.messages = self.messages
        self.room.ends = ffi.from_buffer("int64_t[]", self.ends)
        self.enlarge(BUFFER_BYTES)

    def enlarge(self, capacity: int) -> None:
        """Make the buffer so large; what was in it is lost."""
        self.buffer = ffi.new("char[]", capacity)
        self.bytes = ffi.buffer(self.buffer)
        self.capacity = capacity
        self.room.buffer = self.buffer
        self.room.capacity = capacity


def length_of(message: Any) -> int:
    """How long the copy of a whole chunk is."""
    start = int(ffi.cast("intptr_t", message.chunk))
    return int(ffi.cast("intptr_t", message.body)) - start + int(message.length)
