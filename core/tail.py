"""Tail: a hint where the next message goes.  It may lag behind the truth and never leads it.

The truth is in the words: the first position whose word is not yet of its lap.  Anyone who finds
tail behind helps it on, one position at a time, noting the number of each message it passes, and
deciding on those of which one counts (once.py).
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, load, load_acquire
from shmbroker.core.codes import DAMAGED
from shmbroker.core.head import head_load
from shmbroker.core.kernel import cold, exported_cold, kernel
from shmbroker.core.layout import (
    FREE,
    PORT_HEADER,
    PORT_SLOT_MASK,
    POSITION_MASK,
    RING_TAIL_AT,
)
from shmbroker.core.once import once_note
from shmbroker.core.producer import sequence_note
from shmbroker.core.word import lap_of, laps_ahead, slot_at, word_state

TRIES = 4096
"""How often to follow publishers who are faster than we are."""


@kernel
def tail_load(port: int) -> int:
    return load_acquire(load(port + PORT_HEADER) + RING_TAIL_AT) & POSITION_MASK


@kernel
def is_published(port: int, position: int) -> int:
    """1 if the message of this position exists or has existed."""
    word = load_acquire(slot_at(port, position))
    ahead = laps_ahead(word, lap_of(port, position))
    if ahead > 0 or (ahead == 0 and word_state(word) != FREE):
        return 1
    # laps are modulo: half of their range behind looks as if it was still to come
    return int(head_load(port) > position)


@cold
def tail_pass(port: int, position: int) -> int:
    """Help tail beyond a published position; where tail then is, or DAMAGED.

    A batch moves tail once at its end, so tail lags by at most a ring.
    """
    address = load(port + PORT_HEADER) + RING_TAIL_AT
    steps = load(port + PORT_SLOT_MASK) + 2
    tail = load_acquire(address)
    while (tail & POSITION_MASK) <= position:
        word = load_acquire(slot_at(port, tail))
        ahead = laps_ahead(word, lap_of(port, tail))
        if ahead == 0 and word_state(word) != FREE:
            # the verdict first: it is told by what is noted before this message
            if once_note(port, word, tail) and sequence_note(port, word, tail):
                compare_exchange(address, tail, (tail + 1) & POSITION_MASK)
        moved = load_acquire(address)
        if moved == tail:  # nobody moved it: the words deny that position was published
            return DAMAGED
        tail = moved
        steps -= 1
        if steps < 0:
            return DAMAGED
    return tail & POSITION_MASK


@exported_cold
def true_tail(port: int) -> int:
    """The first position that is not published, with the hint helped up to it; or DAMAGED."""
    slots = load(port + PORT_SLOT_MASK) + 1
    tail = tail_load(port)
    for _ in range(TRIES + slots):
        if not is_published(port, tail):
            if tail - head_load(port) > slots:  # a ring ahead of head: somebody else wrote here
                return DAMAGED
            return tail
        tail = tail_pass(port, tail)
        if tail < 0:
            return DAMAGED
    return DAMAGED
