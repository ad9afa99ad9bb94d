"""Deduplication: of several equal messages one counts, and the others are duplicates.

Messages are equal if they have the same id (ids.py), or the same number of a named producer
(producer.py).  They are published like any other message.  So a producer that is stopped or dies
blocks no other, and its message is in the ring or is not.  Which one counts is decided where all
publishers agree anyway, at tail:

    *tail does not pass such a message without a verdict*, in the message's slot

    find      is the id in the deduplication log, or the number in the table?
    verdict   by CAS in the slot: the second helper uses the verdict of the first
    note      if it counts: the id, the number; so that the next one finds it
    withdraw  if it does not: READY to DONE, unless somebody has taken it
    tail      goes on

Whoever moves tail does all of it.  A helper may die after any step.  The next one repeats the steps
with the same result: an existing verdict stays, and nothing is noted twice.  An id that was noted
for this message does not make it a duplicate of itself: there is a verdict by then, and the CAS of
another one fails.

Whoever takes, looks at or follows such a message helps tail past it and obeys the verdict
(duplicate.py).
"""

from __future__ import annotations

from shmbroker.core.atomics import (
    compare_exchange,
    fence_acquire,
    fetch_add,
    load,
    load_acquire,
)
from shmbroker.core.chunk import chunk_address, chunk_fits, is_once, once_offset
from shmbroker.core.ids import has_ids, id_find, id_note
from shmbroker.core.kernel import cold, kernel
from shmbroker.core.layout import (
    CHUNK_MARK_AT,
    CHUNK_ORIGIN_AT,
    CHUNK_SHAPE_AT,
    COUNTER_WITHDRAWN_AT,
    ID_ELSEWHERE,
    ORIGIN_PRODUCER_SHIFT,
    PORT_HEADER,
    READY,
    RING_TAIL_AT,
    SEQUENCE_MASK,
    SLOT_VERDICT_AT,
)
from shmbroker.core.producer import is_noted
from shmbroker.core.word import slot_at, word_chunk, word_done, word_state


@kernel
def verdict_at(port: int, position: int) -> int:
    return slot_at(port, position) + SLOT_VERDICT_AT


@kernel
def is_verdict(verdict: int, position: int) -> int:
    """1 if this is the verdict on the message at the position, and not on one of another lap."""
    return int(verdict >> 1 == position + 1)


@kernel
def is_known(port: int, high: int, low: int, origin: int) -> int:
    """1 if a message that is the same was noted before."""
    if high | low:
        if high == ID_ELSEWHERE and low == ID_ELSEWHERE:
            return 1
        return int(id_find(port, high, low) > 0)
    return is_noted(port, origin >> ORIGIN_PRODUCER_SHIFT, origin & SEQUENCE_MASK)


@kernel
def verdict_make(port: int, tail: int, seen: int, known: int) -> int:
    """The verdict on the message at tail, ours or that of another who was faster."""
    made = (tail + 1) << 1 | known
    found = compare_exchange(verdict_at(port, tail), seen, made)
    if found == seen:
        if known:
            fetch_add(load(port + PORT_HEADER) + COUNTER_WITHDRAWN_AT, 1)
        return made
    return found


@cold
def once_settle(port: int, word: int, tail: int, address: int, mark: int) -> int:
    at = address + once_offset(mark)
    high = load(at)
    low = load(at + 8)
    known = is_known(port, high, low, load(address + CHUNK_ORIGIN_AT))
    verdict = load_acquire(verdict_at(port, tail))
    # the chunk is only certain to be this message while tail has not passed it: look again
    fence_acquire()
    if load_acquire(load(port + PORT_HEADER) + RING_TAIL_AT) != tail:
        return 0
    if not is_verdict(verdict, tail):
        verdict = verdict_make(port, tail, verdict, known)
    if verdict & 1:
        if word_state(word) == READY:
            compare_exchange(slot_at(port, tail), word, word_done(word))
        return 1
    if high | low and has_ids(port):
        return id_note(port, high, low, tail)
    return 1


@kernel
def once_note(port: int, word: int, tail: int) -> int:
    """Decide on the message at tail before helping tail past it; 0 if tail has moved."""
    chunk = word_chunk(word)
    address = chunk_address(port, chunk)
    if address == 0:
        return 1
    mark = load(address + CHUNK_MARK_AT)
    if not is_once(mark) or not chunk_fits(port, chunk, load(address + CHUNK_SHAPE_AT), mark):
        return 1
    return once_settle(port, word, tail, address, mark)
