"""Staging: chunks of a replica are filled as records come; nobody sees them (core/moment.py)."""

from __future__ import annotations

from shmbroker.core.atomics import load, store
from shmbroker.core.chunk import chunk_delivered, chunk_expiry
from shmbroker.core.codes import INVALID, JOURNAL_DAMAGED, OK, TOO_SMALL
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.layout import (
    CHUNK_EXPIRY_AT,
    CHUNK_ORIGIN_AT,
    PORT_DATA,
    RECORD_HEAD_BYTES,
    RECORD_IS_MESSAGE,
    REPLICA_CODE,
    REPLICA_COUNT,
    REPLICA_FAILED,
    REPLICA_LATER,
    REPLICA_NEXT,
    REPLICA_NUMBER,
    REPLICA_PORT,
    REPLICA_ROOM,
    REPLICA_STAGED,
    STAGED_BYTES,
)
from shmbroker.core.record import (
    record_bytes,
    record_is_of,
    record_kind,
    record_length,
    record_position,
)
from shmbroker.core.replica import replica_stage
from shmbroker.ipc.ring.publishing import loan_copied


@kernel
def message_stage(replica: int, image: int, length: int, position: int) -> int:
    """Fill a chunk with this one, for this position; TOO_SMALL: no room for more of them."""
    port, count = load(replica + REPLICA_PORT), load(replica + REPLICA_COUNT)
    if count == load(replica + REPLICA_ROOM):
        return TOO_SMALL
    chunk = loan_copied(port, image, length)
    if chunk < 0:
        return INVALID if chunk == JOURNAL_DAMAGED else chunk
    copied = load(port + PORT_DATA) + chunk
    expiry = chunk_expiry(copied)
    if expiry != 0:
        store(copied + CHUNK_EXPIRY_AT, max(expiry + load(replica + REPLICA_LATER), 1))
    store(copied + CHUNK_ORIGIN_AT, 0)  # who has published it is known there
    chunk_delivered(copied)
    replica_stage(port, chunk, position)
    staged = load(replica + REPLICA_STAGED) + count * STAGED_BYTES
    store(staged, position)
    store(staged + 8, chunk)
    store(replica + REPLICA_COUNT, count + 1)
    store(replica + REPLICA_NEXT, position + 1)
    return OK


@exported_cold
def messages_stage(replica: int, at: int, end: int, found: int) -> int:
    """Stage the messages of this replica from this record on; *found: which record is the next one.

    OK: it is of something else.  TOO_SMALL: make room for more, and go on there.  INVALID: it is
    none.  Another code is noted: the replica cannot follow.
    """
    code = OK
    number = load(replica + REPLICA_NUMBER)
    while code == OK and record_is_of(at, end, number) and record_kind(at) == RECORD_IS_MESSAGE:
        position, length = record_position(at), record_length(at)
        if position >= load(replica + REPLICA_NEXT):  # else it is known
            code = message_stage(replica, at + RECORD_HEAD_BYTES, length, position)
        if code == OK:
            at += record_bytes(length)
        elif code not in (TOO_SMALL, INVALID):
            store(replica + REPLICA_CODE, code)
            store(replica + REPLICA_FAILED, position)
    store(found, at)
    return code
