"""Messages of the simulation, as records of the journal's format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

HEAD = Struct("<4L2Q")
BODY = Struct("<QQ")
KIND = 1 << 56
POSITION_MASK = (1 << 48) - 1
REFUSED = 1
"""A flag of a message that its target refuses."""


@dataclass(frozen=True, slots=True)
class Message:
    number: int
    """No two messages have the same."""
    size: int
    is_refused: bool = False

    def record(self, position: int) -> bytes:
        flags = REFUSED if self.is_refused else 0
        length = BODY.size + self.size
        head = HEAD.pack(0, 0, length, 0, 0, KIND | position)
        return head + BODY.pack(self.number, flags) + bytes(self.size + (-length % 8))


def records(buffer: bytes | memoryview) -> Iterator[tuple[int, int, Message]]:
    """Of each record: its bytes, the position, and the message."""
    at = 0
    while at < len(buffer):
        _, _, length, _, _, where = HEAD.unpack_from(buffer, at)
        number, flags = BODY.unpack_from(buffer, at + HEAD.size)
        size = HEAD.size + (length + 7 & -8)
        message = Message(number, length - BODY.size, bool(flags & REFUSED))
        yield size, where & POSITION_MASK, message
        at += size
