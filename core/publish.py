"""Publishing: a filled chunk becomes a message by one compare-and-swap on a slot's word.

Until then nobody can see it, so a producer that stops or dies anywhere leaves no hole and delays
nobody.  The word of a slot that is ready for lap L is almost always exactly FREE(L), so the CAS is
tried without a look at it: one transfer of the cache line instead of two.
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, load, store
from shmbroker.core.closed import is_closed, is_left_closed
from shmbroker.core.codes import DAMAGED, DUPLICATE, FULL, INVALID, READ_ONLY
from shmbroker.core.duplicate import verdict_of
from shmbroker.core.head import head_load
from shmbroker.core.kernel import cold, kernel
from shmbroker.core.latest import keeps_latest
from shmbroker.core.layout import (
    CARRIED_PART,
    CHUNK_ORIGIN_AT,
    DONE,
    ORIGIN_PRODUCER_SHIFT,
    PORT_DATA,
    PORT_HEAD_SEEN,
    PORT_HEADER,
    PORT_PRODUCER,
    PORT_SEQUENCE,
    PORT_SLOT_MASK,
    POSITION_MASK,
    RING_TAIL_AT,
    SEQUENCE_MASK,
)
from shmbroker.core.producer import own_sequence_note
from shmbroker.core.reclaim import reclaim
from shmbroker.core.run import run_of, run_published
from shmbroker.core.tail import tail_load, tail_pass
from shmbroker.core.word import lap_of, laps_ahead, slot_at, word_ready, word_state

TRIES = 4096
"""How often to look for a slot.  A lost race means that somebody else published, so only memory
that contradicts itself comes near this."""


@kernel
def is_recycled(port: int, position: int) -> int:
    """1 if head has passed this position: its slot may be used for the next lap."""
    return int(load(port + PORT_HEAD_SEEN) > position or head_load(port) > position)


@cold
def place_further(port: int, chunk: int, tail: int, most: int) -> int:
    """The first free position at tail or above, when the slot of tail was not just FREE.

    FULL if that is so many positions above head, or as many as there are slots.
    """
    if is_closed(port):
        return READ_ONLY
    slots = load(port + PORT_SLOT_MASK) + 1
    for _ in range(TRIES + 2 * slots):
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
            if compare_exchange(slot, seen, ready) == seen:
                return tail
            continue
        ahead = laps_ahead(seen, lap)
        if ahead >= 0:
            tail = tail_pass(port, tail)
            if tail < 0:
                return DAMAGED
        elif ahead < -1:
            # laps are modulo: who was stopped for half of their range is not in front but behind
            if not is_recycled(port, tail):
                return DAMAGED
            tail = tail_load(port)
        elif is_recycled(port, tail - slots):
            # the reclaimer has moved head and not yet been so kind as to make the slot FREE
            if word_state(seen) == DONE and compare_exchange(slot, seen, ready) == seen:
                return tail
        elif reclaim(port) == 0 and not is_recycled(port, tail - slots):
            return FULL
    return DAMAGED


@kernel
def place(port: int, chunk: int, tail: int) -> int:
    """Publish at the first free position, which is at tail or above; the position, or FULL."""
    lap = lap_of(port, tail)
    # SYNC POINT: publish (release): pairs with the load of take_find and of cursors
    if compare_exchange(slot_at(port, tail), lap, word_ready(chunk, lap)) == lap:
        return tail
    return place_further(port, chunk, tail, load(port + PORT_SLOT_MASK) + 1)


@kernel
def slots_for_news(port: int) -> int:
    """How many slots there are for what is published, but for what is carried."""
    slots = load(port + PORT_SLOT_MASK) + 1
    if not keeps_latest(port):
        return slots
    return slots - (slots + CARRIED_PART - 1) // CARRIED_PART


@kernel
def place_keyed(port: int, chunk: int, tail: int) -> int:
    """place; a ring that keeps the newest of each key has slots left for what is carried."""
    if not keeps_latest(port):
        return place(port, chunk, tail)
    return place_further(port, chunk, tail, slots_for_news(port))


@kernel
def next_origin(port: int) -> int:
    """Who we are and the number of our next message, 0 if we do not number."""
    producer = load(port + PORT_PRODUCER)
    if producer == 0:
        return 0
    return (producer << ORIGIN_PRODUCER_SHIFT) | (load(port + PORT_SEQUENCE) + 1)


@kernel
def numbered(port: int, origin: int) -> int:
    """The message with this number of ours is published: note it before tail passes it."""
    if origin != 0:
        store(port + PORT_SEQUENCE, origin & SEQUENCE_MASK)
        own_sequence_note(port, origin & SEQUENCE_MASK)
    return origin


@kernel
def chunk_placed(port: int, chunk: int, origin: int, position: int) -> int:
    """A reserved chunk was placed at this position, or not: what is to be noted."""
    if position < 0:
        return position
    numbered(port, origin)
    tail = load(port + PORT_HEADER) + RING_TAIL_AT
    compare_exchange(tail, position, (position + 1) & POSITION_MASK)
    run_published(port, chunk, position)
    return position


@kernel
def publish_chunk_once(port: int, chunk: int) -> int:
    """Publish a reserved and filled chunk: its position, or FULL; then it is still reserved."""
    if run_of(port, chunk) < 0:
        return INVALID
    origin = next_origin(port)
    store(load(port + PORT_DATA) + chunk + CHUNK_ORIGIN_AT, origin)
    return chunk_placed(port, chunk, origin, place_keyed(port, chunk, tail_load(port)))


@cold
def publish_chunk_checked_once(port: int, chunk: int, origin: int) -> int:
    """publish_chunk_once for a chunk with the flag ONCE, of this producer and number (0 none).

    DUPLICATE: it was published, and it is not the one that counts.  If the ring has gone round
    since, it is too late to tell: its position.
    """
    if run_of(port, chunk) < 0:
        return INVALID
    store(load(port + PORT_DATA) + chunk + CHUNK_ORIGIN_AT, origin)
    position = place(port, chunk, tail_load(port))
    if position < 0:
        return position
    run_published(port, chunk, position)
    return DUPLICATE if verdict_of(port, position) else position
