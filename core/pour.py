"""Pouring: a buffer of the journal's records goes into a ring, each message once.

The port is the origin's (PORT_PRODUCER): the number of a message is the position in its record + 1.
Numbers that are known already are passed over.  The messages are published one by one, the last
number is noted, and then tail is moved over all of them: whoever helps tail past some of them
before that notes their numbers.  So after any death the table says which of them are in the ring.

What needs more than a copy is left to the caller (UNDECIDED): a record of another kind, a message
with more than a body, a key, properties and a priority, or with properties that are no map, and one
that may have an id that counts.
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, copy, load, prefetch_write, store
from shmbroker.core.batch import AHEAD_BYTES
from shmbroker.core.chunk import is_chunk, mark_flags, shape_key, shape_properties
from shmbroker.core.codes import DAMAGED, DUPLICATE, EMPTY, INVALID, OK, UNDECIDED
from shmbroker.core.kernel import kernel
from shmbroker.core.layout import (
    CHUNK_HEADER_BYTES,
    CHUNK_MARK_AT,
    CHUNK_ORIGIN_AT,
    CHUNK_SHAPE_AT,
    LINE_BYTES,
    MARK_DELIVERIES_MASK,
    MARK_MAGIC,
    MARK_MAGIC_SHIFT,
    MARK_PRIORITY_MASK,
    MARK_PRIORITY_SHIFT,
    ORIGIN_PRODUCER_SHIFT,
    PORT_DATA,
    PORT_HEADER,
    PORT_PRODUCER,
    PORT_SLOT_MASK,
    POSITION_MASK,
    POURING_ANSWERS,
    POURING_AT,
    POURING_CHECKS,
    POURING_COUNT,
    POURING_END,
    POURING_LAST,
    RECORD_HEAD_BYTES,
    RECORD_IS_MESSAGE,
    RING_TAIL_AT,
)
from shmbroker.core.packed import map_check
from shmbroker.core.producer import own_sequence_note
from shmbroker.core.publish import place
from shmbroker.core.record import record_bytes, record_kind, record_length, record_position
from shmbroker.core.run import cut, cut_published
from shmbroker.core.tail import tail_load, tail_pass
from shmbroker.core.word import slot_at

KEPT_OF_MARK = MARK_MAGIC << MARK_MAGIC_SHIFT | MARK_PRIORITY_MASK << MARK_PRIORITY_SHIFT
"""How often a message was delivered elsewhere, and how old it was there, does not count here."""
SLOTS_AHEAD = 4
"""The CAS on a slot waits for its line and for all stores before it: so its line is there early."""


@kernel
def is_plain_chunk(chunk: int, length: int, checks: int) -> int:
    """1 if these bytes are a chunk that needs no more than a copy."""
    if not is_chunk(chunk, length) or mark_flags(load(chunk + CHUNK_MARK_AT)):
        return 0
    shape = load(chunk + CHUNK_SHAPE_AT)
    if shape_properties(shape) == 0:
        return 1
    properties = chunk + CHUNK_HEADER_BYTES + shape_key(shape)
    return int(checks == 0 and map_check(properties, properties + shape_properties(shape)) == 1)


@kernel
def pour_one(port: int, chunk_from: int, length: int, sequence: int, tail: int) -> int:
    """Publish one record without moving tail: its position, or a code and no trace."""
    taken = (length + LINE_BYTES - 1) & -LINE_BYTES
    chunk = cut(port, taken)
    if chunk < 0:
        return chunk
    address = load(port + PORT_DATA) + chunk
    for line in range(0, taken, LINE_BYTES):
        prefetch_write(address + AHEAD_BYTES + line)
    prefetch_write(slot_at(port, tail + SLOTS_AHEAD))
    copy(address, chunk_from, length)
    store(address + CHUNK_ORIGIN_AT, load(port + PORT_PRODUCER) << ORIGIN_PRODUCER_SHIFT | sequence)
    mark = load(chunk_from + CHUNK_MARK_AT)
    was_delivered = int((mark & MARK_DELIVERIES_MASK) != 0)  # how often counts only there
    store(address + CHUNK_MARK_AT, mark & KEPT_OF_MARK | was_delivered)
    position = place(port, chunk, tail)
    if position < 0:
        return position
    return cut_published(port, chunk + taken, position)


@kernel
def poured(port: int, pouring: int, answer: int) -> int:
    """The answer to the record at hand; go on behind it."""
    answers = load(pouring + POURING_ANSWERS)
    store(answers, answer)
    store(pouring + POURING_ANSWERS, answers + 8)
    at = load(pouring + POURING_AT)
    length = record_length(at)
    store(pouring + POURING_AT, at + record_bytes(length))
    return answer


@kernel
def pouring_next(pouring: int) -> int:
    """The number of the next record, EMPTY at the end, INVALID, UNDECIDED: no message."""
    at = load(pouring + POURING_AT)
    left = load(pouring + POURING_END) - at
    if left == 0:
        return EMPTY
    if left < RECORD_HEAD_BYTES:
        return INVALID
    if left < record_bytes(record_length(at)):
        return INVALID
    if record_kind(at) != RECORD_IS_MESSAGE:
        return UNDECIDED
    position = record_position(at)
    return position + 1 if position < POSITION_MASK else INVALID


@kernel
def pour_tail(port: int, first: int, done: int, position: int) -> int:
    """The messages are published and the last number is noted: move tail over them."""
    address = load(port + PORT_HEADER) + RING_TAIL_AT
    if position == first + done - 1:  # nobody else's message is among ours
        if compare_exchange(address, first, position + 1) == first:
            return OK
    return OK if tail_pass(port, position) >= 0 else DAMAGED


@kernel
def pour_once(port: int, pouring: int) -> int:
    """Publish records, at most as many as the ring has slots: OK, or what the record at POURING_AT
    was answered: FULL, UNDECIDED or another code."""
    first = tail_load(port)
    position = first - 1
    done = 0
    code = OK
    last = load(pouring + POURING_LAST)
    while done <= load(port + PORT_SLOT_MASK):
        sequence = pouring_next(pouring)
        if sequence < 0:
            code = OK if sequence == EMPTY else sequence
            break
        if sequence <= last:
            poured(port, pouring, DUPLICATE)
            continue
        at = load(pouring + POURING_AT)
        length = record_length(at)
        if not is_plain_chunk(at + RECORD_HEAD_BYTES, length, load(pouring + POURING_CHECKS)):
            code = UNDECIDED
            break
        code = pour_one(port, at + RECORD_HEAD_BYTES, length, sequence, position + 1)
        if code < 0:
            break
        position = poured(port, pouring, code)
        code = OK
        last = sequence
        done += 1
    if done > 0:
        store(pouring + POURING_LAST, last)
        store(pouring + POURING_COUNT, load(pouring + POURING_COUNT) + done)
        own_sequence_note(port, last)
        if pour_tail(port, first, done, position) != OK:
            return DAMAGED
    return code
