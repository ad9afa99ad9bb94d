"""Records of a page file: completed for their place in it, and checked where they were read.

    crc 4 | body's crc 4 | length 4 | 0 | 0, 8 bytes | kind and position 8 | body | zeros up to a
    multiple of 8

The CRC of a head covers its offset and the head, and begins with that of the file's header: so what
another file had there never checks, and a length may be followed, once its head checks.
"""

from __future__ import annotations

from shmbroker.core.atomics import load, store
from shmbroker.core.codes import DAMAGED, EMPTY, INVALID, OK, TOO_SMALL
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.layout import (
    RECORD_HEAD_BYTES,
    SEALING_AT,
    SEALING_COVERED,
    SEALING_END,
    SEALING_NEEDED,
    SEALING_NEXT,
    SEALING_OFFSET,
    SEALING_SEED,
)
from shmbroker.core.record import record_bytes, record_length, record_position
from shmbroker.ipc.base.system import system_checksum
from shmbroker.ipc.journal.checking import BODY_SHIFT, CHECKSUM_MASK, head_checksum

UNIT = 8
QUICK_BYTES = 1 << 19
"""So much is copied and sealed in a fraction of a millisecond: then the interpreter's lock is kept,
which takes longer to come back if others compute."""


@kernel
def sealing_checksum(sealing: int, at: int) -> int:
    seed, offset = load(sealing + SEALING_SEED), load(sealing + SEALING_OFFSET)
    return head_checksum(sealing + SEALING_COVERED, seed, offset, at)


@kernel
def sealing_pass(sealing: int, count: int) -> int:
    """Go on behind so many bytes."""
    store(sealing + SEALING_OFFSET, load(sealing + SEALING_OFFSET) + count)
    at = load(sealing + SEALING_AT) + count
    store(sealing + SEALING_AT, at)
    return at


@exported_cold
def records_seal(sealing: int) -> int:
    """Complete the heads of all records."""
    at = load(sealing + SEALING_AT)
    while at < load(sealing + SEALING_END):
        length = record_length(at)
        body = system_checksum(0, at + RECORD_HEAD_BYTES, length)
        store(at, body << BODY_SHIFT)
        store(at, load(at) | sealing_checksum(sealing, at))
        at = sealing_pass(sealing, record_bytes(length))
    return OK


@kernel
def record_check(sealing: int, at: int) -> int:
    left = load(sealing + SEALING_END) - at
    store(sealing + SEALING_NEEDED, RECORD_HEAD_BYTES)
    if left < RECORD_HEAD_BYTES:
        return TOO_SMALL
    if load(at) & CHECKSUM_MASK != sealing_checksum(sealing, at):
        return INVALID
    length = record_length(at)
    store(sealing + SEALING_NEEDED, record_bytes(length))
    if left < record_bytes(length):
        return TOO_SMALL
    body = system_checksum(0, at + RECORD_HEAD_BYTES, length)
    return OK if (load(at) >> BODY_SHIFT) & CHECKSUM_MASK == body else DAMAGED


@exported_cold
def records_check(sealing: int) -> int:
    """Pass what checks: OK, all of it; or of the record there TOO_SMALL, it is not whole; INVALID,
    its head does not check; DAMAGED, its body does not."""
    at = load(sealing + SEALING_AT)
    while at < load(sealing + SEALING_END):
        code = record_check(sealing, at)
        if code != OK:
            return code
        following = record_position(at) + 1
        if following > load(sealing + SEALING_NEXT):
            store(sealing + SEALING_NEXT, following)
        at = sealing_pass(sealing, load(sealing + SEALING_NEEDED))
    return OK


@exported_cold
def records_find(sealing: int) -> int:
    """Behind a record whose head does not check: OK, at the next one whose head does, and that was
    not read before; EMPTY, there is none here."""
    end = load(sealing + SEALING_END)
    while load(sealing + SEALING_AT) + UNIT + RECORD_HEAD_BYTES <= end:
        at = sealing_pass(sealing, UNIT)
        if load(at) & CHECKSUM_MASK == sealing_checksum(sealing, at):
            if record_position(at) >= load(sealing + SEALING_NEXT):
                return OK
    return EMPTY
