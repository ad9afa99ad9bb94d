"""Transactions: several publishes and acknowledgements, on several rings, that are one.

One store decides: before it, nothing has happened; after it, all of it happens, by the hand of who
committed, of who repairs if that one is dead, or of the journaler if it stands still (commit.py).
So each step after it can be done again, and by several at once, without being done twice:

    acknowledge   LEASED, exactly our word, to DONE; whoever comes second finds another word
    publish       each chunk has a number of a series, and tail never passes a number that is not
                  in the table (producer.py): with tail helped to the truth, the table tells
                  whether the chunk was placed, even if its message has been taken and recycled

A series is an entry of the ring's table of producers, lent to one transaction at a time.  Its
numbers go on where the last transaction ended, and never go back.  What comes from an origin has
the origin's own numbers instead (origin.py).

A message that is to be acknowledged is pledged before: its lease has no deadline any more.  Who
revokes and who pledges do so by CAS on the lease, so one of them wins; see lease_is_over.
"""

from __future__ import annotations

from shmbroker.core.atomics import (
    compare_exchange,
    copy,
    fence_acquire,
    load,
    load_acquire,
    store,
)
from shmbroker.core.chunk import body_offset, chunk_address, chunk_fits, is_once, shape_body
from shmbroker.core.closed import is_left_closed
from shmbroker.core.codes import DAMAGED, FULL, INVALID, NO_PRODUCER, OK, REVOKED, UNDECIDED
from shmbroker.core.gate import gates_floor
from shmbroker.core.head import head_load
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.latest import keeps_latest, latest_note, latest_note_chunk
from shmbroker.core.layout import (
    CHUNK_MARK_AT,
    CHUNK_ORIGIN_AT,
    CHUNK_PUBLISHED_AT,
    CHUNK_SHAPE_AT,
    DONE,
    LAP_MASK,
    LEASE_DEADLINE_SHIFT,
    LEASE_OVER,
    ORIGIN_PRODUCER_SHIFT,
    PORT_HEADER,
    PORT_SLOT_MASK,
    POSITION_MASK,
    PRODUCER_IDENTITY_AT,
    PRODUCER_SEQUENCE_AT,
    PRODUCERS,
    RING_TAIL_AT,
    SEQUENCE_MASK,
    SERIES_IDLE,
    SLOT_LEASE_AT,
)
from shmbroker.core.producer import number_at, producer_at, sequence_raise
from shmbroker.core.publish import is_recycled, slots_for_news
from shmbroker.core.reclaim import reclaim
from shmbroker.core.run import run_published
from shmbroker.core.tail import tail_pass, true_tail
from shmbroker.core.word import lap_of, laps_ahead, slot_at, word_lease_tag, word_ready, word_state

TRIES = 8
"""A lease is written when a message is taken, once by a repair, and when it is revoked."""

PLACE_TRIES = 4096
"""How often others may be faster: each time one of them has published."""


@exported_cold
def series_take(port: int, holder: int) -> int:
    """A series of numbers for a transaction of this participant: its index, or NO_PRODUCER."""
    for series in range(1, PRODUCERS):
        address = producer_at(port, series) + PRODUCER_IDENTITY_AT
        seen = load_acquire(address)
        if seen == 0 or seen == SERIES_IDLE:
            if compare_exchange(address, seen, -holder) == seen:
                return series
    return NO_PRODUCER


@exported_cold
def series_last(port: int, series: int) -> int:
    """The last number of this series: whoever had it before has seen it in the table."""
    # SYNC POINT: sequence (acquire)
    return load_acquire(producer_at(port, series) + PRODUCER_SEQUENCE_AT) & SEQUENCE_MASK


@exported_cold
def series_drop(port: int, series: int, holder: int) -> int:
    """Nothing is left to place: the series is for the next who wants one; 1 if it was ours."""
    address = producer_at(port, series) + PRODUCER_IDENTITY_AT
    if load_acquire(address) != -holder:
        return 0
    return int(compare_exchange(address, -holder, SERIES_IDLE) == -holder)


@exported_cold
def series_is_held(port: int) -> int:
    """1 if a transaction has yet to place what it publishes here.  What one that is done has placed
    is there for whoever looks after this."""
    for series in range(1, PRODUCERS):
        identity = load_acquire(producer_at(port, series) + PRODUCER_IDENTITY_AT)
        if identity < 0 and identity != SERIES_IDLE:
            return 1
    return 0


@exported_cold
def lease_pledge(port: int, position: int, leased: int) -> int:
    """Hold this message without a deadline: what the lease was before, or REVOKED."""
    slot = slot_at(port, position)
    tag = word_lease_tag(leased)
    for _ in range(TRIES):
        # the lease is read before the word: if the message is another's since, the CAS fails
        lease = load_acquire(slot + SLOT_LEASE_AT)
        if load_acquire(slot) != leased or lease == (LEASE_OVER << LEASE_DEADLINE_SHIFT | tag):
            return REVOKED
        if compare_exchange(slot + SLOT_LEASE_AT, lease, tag) == lease:
            return lease  # and who would revoke it now finds another lease than it has read
    return REVOKED


@exported_cold
def lease_restore(port: int, position: int, leased: int, lease: int) -> int:
    """Nothing came of it: the lease is as before; 1 if the message was still pledged.

    Its holder may have written none: then it has the tag of a former one, or is 0.
    """
    address = slot_at(port, position) + SLOT_LEASE_AT
    tag = word_lease_tag(leased)
    return int(compare_exchange(address, tag, lease) == tag)


@exported_cold
def is_in_hand(port: int, position: int, leased: int) -> int:
    """1 if the message is still exactly this one, and ours."""
    return int(load_acquire(slot_at(port, position)) == leased)


@kernel
def is_done(port: int, position: int) -> int:
    word = load_acquire(slot_at(port, position))
    return int(word & LAP_MASK == lap_of(port, position) and word_state(word) == DONE)


@kernel
def is_listed(positions: int, count: int, position: int) -> int:
    for index in range(count):
        if load(positions + index * 8) == position:
            return 1
    return 0


@exported_cold
def room_with(port: int, positions: int, count: int) -> int:
    """How many messages there is room for once these are acknowledged too, or DAMAGED."""
    tail = true_tail(port)
    if tail < 0:
        return tail
    limit = gates_floor(port, tail)
    end = head_load(port)
    while end < limit and (is_done(port, end) or is_listed(positions, count, end)):
        end += 1
    return slots_for_news(port) - (tail - end)


@exported_cold
def chunk_number(port: int, chunk: int, origin: int, published_ns: int) -> int:
    """Give a reserved chunk its number and its time, before the decision."""
    address = chunk_address(port, chunk)
    if address == 0:
        return INVALID
    store(address + CHUNK_ORIGIN_AT, origin)
    store(address + CHUNK_PUBLISHED_AT, published_ns)
    return OK


@kernel
def place_here(port: int, chunk: int, tail: int) -> int:
    """Publish at tail, which was the truth, and nowhere else; UNDECIDED if it no longer is."""
    slots = load(port + PORT_SLOT_MASK) + 1
    most = slots_for_news(port)
    if most < slots and not is_recycled(port, tail - most):
        if reclaim(port) == 0 and not is_recycled(port, tail - most):
            return FULL
    lap = lap_of(port, tail)
    slot = slot_at(port, tail)
    ready = word_ready(chunk, lap)
    seen = compare_exchange(slot, lap, ready)
    if seen == lap:
        return tail
    if is_left_closed(port, seen, lap):
        return tail if compare_exchange(slot, seen, ready) == seen else UNDECIDED
    if laps_ahead(seen, lap) != -1:
        return UNDECIDED
    if is_recycled(port, tail - slots):
        # the reclaimer has moved head and not yet been so kind as to make the slot FREE
        if word_state(seen) == DONE and compare_exchange(slot, seen, ready) == seen:
            return tail
    elif reclaim(port) == 0 and not is_recycled(port, tail - slots):
        return FULL
    return UNDECIDED


@kernel
def place_once(port: int, chunk: int, origin: int, looks: int) -> int:
    """Publish a chunk unless it was before: OK, or FULL.

    `looks`: if it was, see to it that its key finds it, in a ring that keeps the newest of each.
    That is a search: for the owner, who tells that it is published; not for a helper.

    Several may do so at once, also such as were stopped for long.  While the number is not in the
    table, the chunk is at no position below a true tail; nobody can place it beyond, because
    positions are published in order; and at tail one CAS succeeds.
    """
    noted = number_at(port, origin >> ORIGIN_PRODUCER_SHIFT)
    if noted == 0 or chunk_address(port, chunk) == 0:
        return DAMAGED
    position = UNDECIDED
    last = 0
    for _ in range(PLACE_TRIES):
        tail = true_tail(port)
        if tail < 0:
            return tail
        # SYNC POINT: sequence (acquire)
        last = load_acquire(noted)
        if last & SEQUENCE_MASK >= origin & SEQUENCE_MASK:
            if looks and keeps_latest(port):
                latest_note_chunk(port, chunk)
            return OK
        position = place_here(port, chunk, tail)
        if position != UNDECIDED:
            break
    if position < 0:
        return DAMAGED if position == UNDECIDED else position
    # SYNC POINT: sequence (release): before tail passes the message
    sequence_raise(noted, last, origin & SEQUENCE_MASK)
    if is_once(load(chunk_address(port, chunk) + CHUNK_MARK_AT)):
        tail_pass(port, position)  # which does not happen without a verdict
    address = load(port + PORT_HEADER) + RING_TAIL_AT
    compare_exchange(address, position, (position + 1) & POSITION_MASK)
    if keeps_latest(port):
        latest_note(port, position, word_ready(chunk, 0), 0)  # its owner may go on meanwhile
    return OK


@exported_cold
def transaction_unplaced(port: int, chunk: int, origin: int, target: int, room: int) -> int:
    """Copy a chunk that is to be published, if no slot has it yet: its length; 0 if one has it, or
    had it.

    Nothing is copied if it is longer than `room`.  Its memory is reused only after tail has passed
    it, and so after its number is in the table: that is looked at again behind the copy.
    """
    noted = number_at(port, origin >> ORIGIN_PRODUCER_SHIFT)
    address = chunk_address(port, chunk)
    if noted == 0 or address == 0:
        return 0
    # SYNC POINT: sequence (acquire)
    if load_acquire(noted) & SEQUENCE_MASK >= origin & SEQUENCE_MASK:
        return 0
    shape = load(address + CHUNK_SHAPE_AT)
    mark = load(address + CHUNK_MARK_AT)
    if not chunk_fits(port, chunk, shape, mark):
        return 0
    length = body_offset(shape, mark) + shape_body(shape)
    if length <= room:
        copy(target, address, length)
    fence_acquire()
    if load_acquire(noted) & SEQUENCE_MASK >= origin & SEQUENCE_MASK:
        return 0
    return length


@exported_cold
def loan_placed(port: int, chunk: int) -> int:
    """A chunk on loan of this port has become a message, at a position that is below tail."""
    tail = true_tail(port)
    return tail if tail < 0 else run_published(port, chunk, tail - 1)
