"""The bell: wakes a sleeper when there is work, without a count that could be wrong.

One word.  Its low half is 1 if a thread may sleep on it, so ring.  It is sticky: a sleeper that is
killed leaves a 1 behind, and the next ring costs one needless wake-up.

    sleeper                              worker
    1. arm: set 1                        1. the CAS that makes the work visible
    2. look for work once more           2. load bell; if it is not 0: exchange(bell, 0) and wake
    3. sleep while bell is 1

Both first steps are locked operations.  With a plain store in either place, x86 itself may let the
load of step 2 pass the store of step 1, on both sides, and the sleeper sleeps on ready work.

One thread may follow thousands of rings.  It has a follower's bell, one of a few in the arena: a
word on which it sleeps, and a set of rows in which whoever rings says where there is work.  In the
upper half of a ring's bell each follower's bell has a bit.  Who rings takes the bits with the rest,
so a worker looks at nothing more than before, and a ring that is followed costs it something once
each time the follower has found the ring empty.

    follower                             worker, who has taken its bit from the ring's bell
    1. arm its own bell                  1. put the row into the set
    2. take the set: for each ring in    2. ring the follower's bell
       it set the bit, then look
    3. sleep while its bell is 1

The set has RUNG_ROWS bits for more rows than that: a follower looks at all its rings whose row
falls on a bit.  Bits in the bells of rings stay when a follower dies; whoever has its bell next is
told of rings that are not its own, and ignores that.
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, exchange, load_acquire
from shmbroker.core.kernel import exported, exported_cold, kernel
from shmbroker.core.layout import (
    FOLLOWER_BELL_AT,
    FOLLOWER_RUNG_AT,
    RUNG_BITS,
    RUNG_ROWS,
    RUNG_WORDS,
)

ASLEEP = 1
FOLLOWERS_SHIFT = 32


@kernel
def bits_set(word: int, bits: int) -> int:
    """Set these bits by a locked operation, also if they are set; what was there before."""
    seen = load_acquire(word)
    while True:
        found = compare_exchange(word, seen, seen | bits)
        if found == seen:
            return seen
        seen = found


@exported
def bell_arm(bell: int) -> int:
    """Announce that we are about to sleep.  Look for work once more after this."""
    # SYNC POINT: bell (sequentially consistent): pairs with the load of bell_ring
    return bits_set(bell, ASLEEP)


@exported
def bell_ring(bell: int) -> int:
    """What is not 0 if somebody is to be woken.  Called after a CAS made work visible."""
    # SYNC POINT: bell (after a locked operation): pairs with the exchange of bell_arm
    if load_acquire(bell) == 0:
        return 0
    return exchange(bell, 0)


@exported
def bell_follow(bell: int, follower: int) -> int:
    """Whoever rings this bell of a ring tells the follower of this number, once."""
    # SYNC POINT: bell (sequentially consistent): pairs with the load of bell_ring
    return bits_set(bell, 1 << (FOLLOWERS_SHIFT + follower))


@kernel
def followers_in(rung: int) -> int:
    """A bit for each follower that is to be told, of what bell_ring has answered."""
    return rung >> FOLLOWERS_SHIFT


@exported_cold
def follower_tell(place: int, row: int) -> int:
    """There is work in the ring of this row, for whoever has this bell; 1: it is to be woken."""
    bit = row % RUNG_ROWS
    bits_set(place + FOLLOWER_RUNG_AT + (bit // RUNG_BITS) * 8, 1 << (bit % RUNG_BITS))
    return bell_ring(place + FOLLOWER_BELL_AT)


@exported_cold
def follower_rung(place: int, word: int) -> int:
    """What was put into a word of the set since it was asked for last."""
    if word < 0 or word >= RUNG_WORDS:
        return 0
    address = place + FOLLOWER_RUNG_AT + word * 8
    if load_acquire(address) == 0:
        return 0
    return exchange(address, 0)
