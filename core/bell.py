"""The bell: wakes a sleeper when there is work, without a count that could be wrong.

One word: 1 means that a thread may sleep, so ring.  It is sticky: a sleeper that is killed leaves a
1 behind, and the next ring costs one needless wake-up.

    sleeper                              worker
    1. exchange(bell, 1)                 1. the CAS that makes the work visible
    2. look for work once more           2. load bell; if 1: exchange(bell, 0) and wake
    3. sleep while bell is 1

Both first steps are locked operations.  With a plain store in either place, x86 itself may let the
load of step 2 pass the store of step 1, on both sides, and the sleeper sleeps on ready work.
"""

from __future__ import annotations

from shmbroker.core.atomics import exchange, load_acquire
from shmbroker.core.kernel import exported

ASLEEP = 1


@exported
def bell_arm(bell: int) -> int:
    """Announce that we are about to sleep.  Look for work once more after this."""
    # SYNC POINT: bell (sequentially consistent): pairs with the load of bell_ring
    return exchange(bell, ASLEEP)


@exported
def bell_ring(bell: int) -> int:
    """1 if somebody may sleep and is to be woken.  Called after a CAS made work visible."""
    # SYNC POINT: bell (after a locked operation): pairs with the exchange of bell_arm
    if load_acquire(bell) == 0:
        return 0
    return exchange(bell, 0)
