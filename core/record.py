"""A record with a head as the journal's (ipc/journal/format.h): its length, whose it is and where.

bytes 0-7: checksums | 8: length of the body, 12: frame | 16: queue | 24: kind, marks, position
"""

from __future__ import annotations

from shmbroker.core.atomics import load
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.layout import (
    POSITION_MASK,
    RECORD_HEAD_BYTES,
    RECORD_KIND_SHIFT,
    RECORD_LENGTH_AT,
    RECORD_QUEUE_AT,
    RECORD_WHERE_AT,
)

LENGTH_MASK = 0xFFFFFFFF
KIND_MASK = 0xFF


@kernel
def record_bytes(length: int) -> int:
    """How much a record with a body of this length takes."""
    return RECORD_HEAD_BYTES + ((length + 7) & -8)


@kernel
def record_length(at: int) -> int:
    return load(at + RECORD_LENGTH_AT) & LENGTH_MASK


@kernel
def record_kind(at: int) -> int:
    return (load(at + RECORD_WHERE_AT) >> RECORD_KIND_SHIFT) & KIND_MASK


@kernel
def record_position(at: int) -> int:
    return load(at + RECORD_WHERE_AT) & POSITION_MASK


@kernel
def record_is_of(at: int, end: int, queue: int) -> int:
    """1 if a whole record of this queue is here."""
    if end - at < RECORD_HEAD_BYTES or load(at + RECORD_QUEUE_AT) != queue:
        return 0
    return int(record_bytes(record_length(at)) <= end - at)


@exported_cold
def records_pass(at: int, end: int) -> int:
    """Behind this record, and those behind it that are of the same queue."""
    queue = load(at + RECORD_QUEUE_AT)
    while record_is_of(at, end, queue):
        at += record_bytes(record_length(at))
    return at
