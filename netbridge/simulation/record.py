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
        return record_of(position, BODY.pack(self.number, flags) + bytes(self.size))


def record_of(position: int, body: bytes) -> bytes:
    length = len(body)
    return HEAD.pack(0, 0, length, 0, 0, KIND | position) + body + bytes(-length % 8)


def bodies(buffer: bytes | memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Of each record: its bytes, the position, and the body."""
    view, at = memoryview(buffer), 0
    while at < len(view):
        _, _, length, _, _, where = HEAD.unpack_from(view, at)
        size = HEAD.size + (length + 7 & -8)
        yield size, where & POSITION_MASK, view[at + HEAD.size : at + HEAD.size + length]
        at += size


def records(buffer: bytes | memoryview) -> Iterator[tuple[int, int, Message]]:
    """Of each record: its bytes, the position, and the message."""
    for size, position, body in bodies(buffer):
        number, flags = BODY.unpack_from(body)
        message = Message(number, len(body) - BODY.size, bool(flags & REFUSED))
        yield size, position, message
