"""Reclaiming: head, the oldest position whose slot and memory are still in use.

Head is a truth, not a hint: a slot may be published to again as soon as head has passed it, and a
sealed block is free when head has passed its last position.  One CAS moves head over a batch of
DONE slots, up to the lowest gate, and never past tail (see producer.py) or take.  Afterwards the
reclaimer makes the slots FREE, as a courtesy: a publisher then needs no look at the old word.  If
it dies before, publishers take the DONE slots as they are.
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, load, load_acquire, store
from shmbroker.core.closed import laps_behind
from shmbroker.core.gate import gates_floor
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.layout import (
    DONE,
    EPOCH_STEP,
    LAP_MASK,
    PORT_FLAGS,
    PORT_HEAD_SEEN,
    PORT_HEADER,
    PORT_SLOT_MASK,
    POSITION_MASK,
    READY,
    RING_BROADCAST,
    RING_HEAD_AT,
    RING_TAKE_AT,
)
from shmbroker.core.tail import tail_load, tail_pass
from shmbroker.core.word import lap_of, slot_at, word_done, word_state

RECLAIM_BATCH = 64
TAKE_TRIES = 8


@kernel
def done_run(port: int, position: int, limit: int) -> int:
    """The end of the run of DONE slots from position, at most limit.

    In a broadcast ring nobody takes: a READY message below every gate is done with.
    """
    while position < limit:
        slot = slot_at(port, position)
        # SYNC POINT: done (acquire): pairs with the CAS of ack
        word = load_acquire(slot)
        if (word & LAP_MASK) != lap_of(port, position):
            return position
        if word_state(word) == READY and load(port + PORT_FLAGS) & RING_BROADCAST:
            if compare_exchange(slot, word, word_done(word)) != word:
                return position
        elif word_state(word) != DONE:
            return position
        position += 1
    return position


@kernel
def take_raise(port: int, end: int) -> int:
    """Move take up to end, below which all is DONE, into the next epoch; 1 if it is there.

    The epoch is moved even if take is high enough: somebody who gave a message back before it was
    taken and acknowledged again may be about to lower take to it, below head, and must fail.
    """
    address = load(port + PORT_HEADER) + RING_TAKE_AT
    take = load_acquire(address)
    for _ in range(TAKE_TRIES):
        behind = max(0, end - (take & POSITION_MASK))
        seen = compare_exchange(address, take, take + behind + EPOCH_STEP)
        if seen == take:
            return 1
        take = seen
    return 0


@kernel
def slots_free(port: int, position: int, end: int) -> int:
    """The courtesy: slots that head has passed become FREE for their next lap; of a replica, closed
    (closed.py)."""
    behind = laps_behind(port)
    while position < end:
        slot = slot_at(port, position)
        word = load_acquire(slot)
        lap = lap_of(port, position)
        if (word & LAP_MASK) == lap and word_state(word) == DONE:
            compare_exchange(slot, word, (lap + 1 - behind) & LAP_MASK)
        position += 1
    return position


@exported_cold
def reclaim(port: int) -> int:
    """Move head over what is done with; how many positions, 0 if none could be."""
    address = load(port + PORT_HEADER) + RING_HEAD_AT
    head = load_acquire(address)
    position = head & POSITION_MASK
    limit = position + min(RECLAIM_BATCH, load(port + PORT_SLOT_MASK) + 1)
    limit = gates_floor(port, limit)
    end = done_run(port, position, limit)
    if end <= position:
        return 0
    if tail_load(port) < end and tail_pass(port, end - 1) < end:
        return 0
    if not take_raise(port, end):
        return 0
    # SYNC POINT: head (release)
    if compare_exchange(address, head, head + (end - position)) != head:
        return 0
    store(port + PORT_HEAD_SEEN, end)
    slots_free(port, position, end)
    return end - position
