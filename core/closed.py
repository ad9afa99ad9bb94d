"""A ring that is closed: it follows a queue of another broker, and only its applier changes it.

Publishers try a CAS from FREE of the lap without a look at anything else, so a closed ring has no
slot that is FREE of its lap: those that are free are so of CLOSED_LAPS before.  Readers take that
for a message that is still to come, as they would of a slow publisher.  A publisher whose CAS
fails looks here: is it closed?

A ring that is detached is closed no more, and its slots are as they were.  Whoever publishes takes
them so, for one lap.  Only rings that were made as replicas have such slots; the flag of that is in
each port.
"""

from __future__ import annotations

from shmbroker.core.atomics import load, load_acquire
from shmbroker.core.kernel import kernel
from shmbroker.core.layout import (
    CHUNK_FIELD,
    CLOSED_LAPS,
    DONE,
    LAP_MASK,
    PORT_FLAGS,
    PORT_HEADER,
    RING_CLOSED_AT,
    RING_REPLICA,
)
from shmbroker.core.word import word_state


@kernel
def is_closed(port: int) -> int:
    """1 if nobody but the applier may publish."""
    if load(port + PORT_FLAGS) & RING_REPLICA == 0:
        return 0
    return int(load_acquire(load(port + PORT_HEADER) + RING_CLOSED_AT) != 0)


@kernel
def closed_word(lap: int) -> int:
    """Of a slot that is free for this lap, and closed."""
    return (lap - CLOSED_LAPS) & LAP_MASK


@kernel
def is_left_closed(port: int, word: int, lap: int) -> int:
    """1 if it is such a word, of a ring that may be detached."""
    return int(load(port + PORT_FLAGS) & RING_REPLICA != 0 and word == closed_word(lap))


@kernel
def is_left_out(port: int, word: int) -> int:
    """1 if a replica has no message there: it was done with before it came (replica.py).

    Of what was placed the word may look so for the first chunk of the arena, when it is done with.
    """
    if load(port + PORT_FLAGS) & RING_REPLICA == 0:
        return 0
    return int(word_state(word) == DONE and word & CHUNK_FIELD == 0)


@kernel
def laps_behind(port: int) -> int:
    """How far behind of its lap a slot that becomes free is marked."""
    return CLOSED_LAPS if is_closed(port) else 0
