"""Records as they lie one behind the other in files, frames and batches (ipc/journal/format.h)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final

from shmbroker.core.layout import POSITION_MASK, RECORD_HEAD_BYTES, RECORD_KIND_SHIFT

HEAD: Final = Struct("<4LqQ")
"""CRC of what follows, CRC and length of the body, frame, queue, kind with position.  The number of
a list of ids has the sign bit."""

assert HEAD.size == RECORD_HEAD_BYTES


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
        _crc, _body_crc, length, _frame, queue, where = HEAD.unpack_from(memory, at)
        at += HEAD.size
        kind, body = where >> RECORD_KIND_SHIFT, bytes(memory[at : at + length])
        yield Stored(kind, queue, where & POSITION_MASK, body)
        at += length + 7 & -8
