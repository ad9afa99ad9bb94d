"""Messages of a queue that pages, in batches: out of its inbox as records, and into its ring.

Records are as the journal's (core/record.py); those for a file are completed there (sealing.py).
A message's number in the ring is its position in the inbox + 1 (core/producer.py).
"""

from __future__ import annotations

from shmbroker.core.atomics import copy, load, store
from shmbroker.core.chunk import chunk_expiry
from shmbroker.core.codes import ARENA_FULL, EMPTY, FULL, NO_MEMORY, OK, TOO_SMALL, UNDECIDED
from shmbroker.core.cursor import cursor_next
from shmbroker.core.expiry import expiry_note
from shmbroker.core.gate import gate_move, gate_position
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.layout import (
    CHUNK_EXPIRY_AT,
    CURSOR_GATE,
    CURSOR_PORT,
    CURSOR_POSITION,
    GATHERING_AT,
    GATHERING_BELOW,
    GATHERING_END,
    GATHERING_ENOUGH,
    GATHERING_FIRST,
    GATHERING_LEFT,
    GATHERING_MESSAGE,
    GATHERING_NEEDED,
    LINE_BYTES,
    MESSAGE_BODY,
    MESSAGE_CHUNK,
    MESSAGE_LENGTH,
    MESSAGE_POSITION,
    PORT_DATA,
    PORT_HEADER,
    PORT_SEQUENCE,
    RECORD_HEAD_BYTES,
    RECORD_IS_MESSAGE,
    RECORD_KIND_SHIFT,
    RECORD_LENGTH_AT,
    RECORD_QUEUE_AT,
    RECORD_WHERE_AT,
    REFILLING_AT,
    REFILLING_BYTES_LEFT,
    REFILLING_BYTES_MAX,
    REFILLING_COUNT,
    REFILLING_END,
    REFILLING_EXACT,
    REFILLING_LATER,
    REFILLING_MOST,
    REFILLING_NEXT,
    REFILLING_SLOTS,
)
from shmbroker.core.purge import bytes_held, window
from shmbroker.core.reclaim import reclaim
from shmbroker.core.record import record_bytes, record_kind, record_length, record_position
from shmbroker.core.run import unreserve
from shmbroker.ipc.ring.publishing import loan_copied, publish_chunk
from shmbroker.ipc.ring.waiting import tell_producers

# --- out of the inbox -----------------------------------------------------------------------------


@kernel
def gathered_write(at: int, position: int, chunk: int, length: int) -> int:
    whole = record_bytes(length)
    store(at + whole - 8, 0)  # the zeros behind the body, before it comes
    store(at, 0)
    store(at + RECORD_LENGTH_AT, length)
    store(at + RECORD_QUEUE_AT, 0)
    store(at + RECORD_WHERE_AT, position | RECORD_IS_MESSAGE << RECORD_KIND_SHIFT)
    copy(at + RECORD_HEAD_BYTES, chunk, length)
    return at + whole


@exported_cold
def inbox_gather(cursor: int, gathering: int) -> int:
    """Write what is at the cursor as records: OK, as many as were wanted; EMPTY, there is no more;
    TOO_SMALL for the next one; DAMAGED, the one at the cursor; or what cursor_next answers."""
    message = gathering + GATHERING_MESSAGE
    while load(gathering + GATHERING_LEFT) > 0:
        at = load(gathering + GATHERING_AT)
        if at >= load(gathering + GATHERING_ENOUGH):
            return OK
        if load(cursor + CURSOR_POSITION) >= load(gathering + GATHERING_BELOW):
            return EMPTY
        code = cursor_next(cursor, message)
        if code != OK:
            return code
        position = load(message + MESSAGE_POSITION)
        chunk = load(message + MESSAGE_CHUNK)
        length = load(message + MESSAGE_BODY) + load(message + MESSAGE_LENGTH) - chunk
        if position >= load(gathering + GATHERING_FIRST):
            if at + record_bytes(length) > load(gathering + GATHERING_END):
                store(cursor + CURSOR_POSITION, position)
                store(gathering + GATHERING_NEEDED, record_bytes(length))
                return TOO_SMALL
            store(gathering + GATHERING_AT, gathered_write(at, position, chunk, length))
        store(gathering + GATHERING_LEFT, load(gathering + GATHERING_LEFT) - 1)
    return OK


@exported_cold
def inbox_release(cursor: int, position: int) -> int:
    """All below is in a file or in the ring: there is room for producers.  REVOKED."""
    port = load(cursor + CURSOR_PORT)
    gate = load(cursor + CURSOR_GATE)
    if gate_position(port, gate) >= position:
        return OK
    code = gate_move(port, gate, position)
    if code < 0:
        return code
    while reclaim(port) > 0:
        continue
    tell_producers(port)
    return OK


# --- into the ring --------------------------------------------------------------------------------


@kernel
def is_room_for(port: int, refilling: int, taken: int) -> int:
    """Counting looks at every message in the ring, so it is done again only when it says no."""
    if load(refilling + REFILLING_BYTES_LEFT) < taken:
        left = load(refilling + REFILLING_BYTES_MAX) - bytes_held(port)
        store(refilling + REFILLING_BYTES_LEFT, left)
        return int(left >= taken or window(port) == 0)
    return 1


@kernel
def refill_one(port: int, refilling: int, at: int) -> int:
    """OK, or FULL: later."""
    image = at + RECORD_HEAD_BYTES
    length = record_length(at)
    taken = (length + LINE_BYTES - 1) & -LINE_BYTES
    if not is_room_for(port, refilling, taken):
        return FULL
    chunk = loan_copied(port, image, length)
    if chunk < 0:
        return FULL if chunk in (ARENA_FULL, NO_MEMORY) else chunk
    expiry = chunk_expiry(image)
    later = load(refilling + REFILLING_LATER)
    if expiry != 0 and later != 0:
        expiry = max(expiry + later, 1)
        store(load(port + PORT_DATA) + chunk + CHUNK_EXPIRY_AT, expiry)
    store(port + PORT_SEQUENCE, record_position(at))
    code = publish_chunk(port, chunk)
    if code < 0:
        unreserve(port, chunk)
        return code
    if expiry != 0:
        expiry_note(load(port + PORT_HEADER), expiry)
    store(refilling + REFILLING_BYTES_LEFT, load(refilling + REFILLING_BYTES_LEFT) - taken)
    return OK


@kernel
def slots_left(port: int, refilling: int) -> int:
    """So many messages may be published, as far as slots go."""
    while reclaim(port) > 0:
        continue
    left = load(refilling + REFILLING_SLOTS) - window(port)
    return min(left, load(refilling + REFILLING_MOST))


@exported_cold
def ring_has_room(port: int, refilling: int) -> int:
    """0 if the record at hand would find none."""
    taken = (record_length(load(refilling + REFILLING_AT)) + LINE_BYTES - 1) & -LINE_BYTES
    return int(slots_left(port, refilling) > 0 and is_room_for(port, refilling, taken) != 0)


@exported_cold
def ring_refill(port: int, refilling: int) -> int:
    """Publish records: OK, all of them; FULL, no more have room; UNDECIDED, before the one at hand
    something is missing, or it is no message; or what was answered to that one."""
    left = slots_left(port, refilling)
    code = OK
    while load(refilling + REFILLING_AT) < load(refilling + REFILLING_END):
        at = load(refilling + REFILLING_AT)
        following = load(refilling + REFILLING_NEXT)
        position = record_position(at)
        is_message = record_kind(at) == RECORD_IS_MESSAGE
        if load(refilling + REFILLING_EXACT) and (position > following or not is_message):
            return UNDECIDED
        if position >= following:
            code = refill_one(port, refilling, at) if left > 0 else FULL
            if code != OK:
                return code
            left -= 1
            store(refilling + REFILLING_NEXT, position + 1)
            store(refilling + REFILLING_COUNT, load(refilling + REFILLING_COUNT) + 1)
        store(refilling + REFILLING_AT, at + record_bytes(record_length(at)))
    return OK
