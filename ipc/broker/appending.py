"""What one record of a journal says of a ring that has no name yet: a message, and what is retired
(core/restore.py)."""

from __future__ import annotations

from shmbroker.core.atomics import load, store
from shmbroker.core.chunk import chunk_delivered, chunk_expiry
from shmbroker.core.codes import JOURNAL_DAMAGED, OK
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.layout import (
    APPENDING_AHEAD,
    APPENDING_HOLES_BELOW,
    APPENDING_IS_SCHEDULE,
    APPENDING_LAST_ID,
    APPENDING_LATER,
    CHUNK_EXPIRY_AT,
    CHUNK_EXTENDED,
    CHUNK_MARK_AT,
    CHUNK_NOT_BEFORE_AT,
    CHUNK_SHAPE_AT,
    MARK_FLAGS_SHIFT,
    PORT_DATA,
    PORT_FLAGS,
    RING_BROADCAST,
    SCHEDULED_BYTES,
    SCHEDULED_DUE_AT,
    SCHEDULED_ID_AT,
    SHAPE_BODY_SHIFT,
)
from shmbroker.core.restore import (
    restore_head,
    restore_message,
    restore_retired,
    restored_tail,
)
from shmbroker.core.run import unreserve
from shmbroker.ipc.ring.publishing import loan_body, loan_copied


@kernel
def append_due(port: int, chunk: int, appending: int) -> int:
    """By the time of day, for what is scheduled was perhaps so in another boot."""
    data = load(port + PORT_DATA) + chunk
    is_extended = load(data + CHUNK_MARK_AT) >> MARK_FLAGS_SHIFT & CHUNK_EXTENDED
    if not is_extended or load(data + CHUNK_SHAPE_AT) >> SHAPE_BODY_SHIFT < SCHEDULED_BYTES:
        return JOURNAL_DAMAGED
    body = loan_body(port, chunk)
    last = max(load(appending + APPENDING_LAST_ID), load(body + SCHEDULED_ID_AT))
    store(appending + APPENDING_LAST_ID, last)
    due = load(body + SCHEDULED_DUE_AT)
    # below 0 if it was before this boot: what was due earlier is delivered earlier
    due = due - load(appending + APPENDING_AHEAD) if due > 0 else 1
    store(data + CHUNK_NOT_BEFORE_AT, due)
    return OK


@exported_cold
def append_chunk(port: int, body: int, length: int, appending: int) -> int:
    """A chunk as long as its record, reserved by this port and filled: its offset."""
    chunk = loan_copied(port, body, length)
    if chunk < 0:
        return chunk
    data = load(port + PORT_DATA) + chunk
    expiry = chunk_expiry(data)
    if expiry != 0:
        store(data + CHUNK_EXPIRY_AT, max(expiry + load(appending + APPENDING_LATER), 1))
    if load(appending + APPENDING_IS_SCHEDULE) and append_due(port, chunk, appending) != OK:
        unreserve(port, chunk)
        return JOURNAL_DAMAGED
    return chunk


@kernel
def append_passes(port: int, position: int, appending: int) -> int:
    """What is between the tail and there has no message, or it comes later."""
    if position > restored_tail(port):
        store(appending + APPENDING_HOLES_BELOW, position)
    return OK


@kernel
def is_for_consumers(port: int, appending: int) -> int:
    """1 unless it is a schedule or an inbox: what is there was delivered to nobody."""
    if load(port + PORT_FLAGS) & RING_BROADCAST:
        return 0
    return int(load(appending + APPENDING_IS_SCHEDULE) == 0)


@exported_cold
def append_message(port: int, position: int, body: int, length: int, appending: int) -> int:
    """As restore_message, with what append_chunk answers if it has no chunk."""
    chunk = append_chunk(port, body, length, appending)
    if chunk < 0:
        return chunk
    append_passes(port, position, appending)
    if is_for_consumers(port, appending):
        chunk_delivered(load(port + PORT_DATA) + chunk)
    code = restore_message(port, position, chunk)
    if code != OK:
        unreserve(port, chunk)
    return code


@exported_cold
def append_retired(port: int, position: int, body: int, length: int, appending: int) -> int:
    """All below the position are retired, and so is each whose bit is set."""
    code = restore_head(port, position)
    for at in range(0, length, 8):  # behind a body there are zeros, up to a multiple of 8
        word = load(body + at)
        for bit in range(64):
            if word >> bit & 1 and code == OK:
                append_passes(port, position + 8 * at + bit + 1, appending)
                code = restore_retired(port, position + 8 * at + bit)
    return code
