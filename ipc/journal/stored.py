"""Records as they lie one behind the other in files, frames and batches (ipc/journal/format.h)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from shmbroker.core.layout import POSITION_BITS

_HEAD = Struct("<4L2Q")
_KIND_SHIFT = 56


@dataclass(frozen=True, slots=True)
class Stored:
    """One of them."""

    kind: int
    queue: int
    """The number of the queue: the same in the journal, and for each who follows it."""
    position: int
    body: bytes


def stored(memory: memoryview) -> Iterator[Stored]:
    """For people and tests; nothing of it is needed to pass records on."""
    at = 0
    while at < len(memory):
        _crc, _body_crc, length, _frame, queue, where = _HEAD.unpack_from(memory, at)
        at += _HEAD.size
        position = where & (1 << POSITION_BITS) - 1
        number = queue - (queue >> 63 << 64)
        yield Stored(where >> _KIND_SHIFT, number, position, bytes(memory[at : at + length]))
        at += length + 7 & -8
