"""The due word: when a schedule must be looked at next, and which mover looks.

One word, on which publishers and movers agree without a lock:

    t             nothing that was noted is due before t
    t, claimed    a mover looks; one that finds the word unchanged after t takes over
    0             nothing is scheduled

    note    publish first, then lower the word to the message's time, and take away the claim
    claim   the exact word that was seen, to claimed; then look at everything
    settle  exactly our claim, to the time of the next message

A message whose note came before the claim was there when the look began.  A note after it takes the
claim away, so settling fails, and the mover looks again.  A mover that claims again during its look
overwrites such a note, so it looks once more before it settles for later.  A mover that dies or is
stopped during its look leaves a claim, which another takes over at time t.  If a publisher dies
between publishing and its note, its repair notes that something may be due now.
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, load_acquire
from shmbroker.core.kernel import exported_cold
from shmbroker.core.layout import DUE_CLAIMED

TRIES = 4096
"""A lost race means that somebody else noted, claimed or settled."""


@exported_cold
def due_note(word: int, due: int) -> int:
    """Something was scheduled for then: 1 if whoever looks is to be told, as it is before the rest;
    2 if there was nothing."""
    due = max(due & ~DUE_CLAIMED, DUE_CLAIMED + 1)
    for _ in range(TRIES):
        # SYNC POINT: due (after a locked operation): the message was published before
        seen = load_acquire(word)
        time = seen & ~DUE_CLAIMED
        if seen == time and seen != 0 and seen <= due:
            return 0
        noted = due if time == 0 else min(time, due)
        if compare_exchange(word, seen, noted) == seen:
            if seen == 0:
                return 2
            return int(seen == time)  # who has a claim finds out when it settles
    return 0


@exported_cold
def due_claim(word: int, seen: int, until: int) -> int:
    """Look at the schedule, until then: our claim, or 0 if the word is no longer what was seen."""
    claim = until | DUE_CLAIMED
    # SYNC POINT: due (sequentially consistent): who noted before has published before we look
    return claim if compare_exchange(word, seen, claim) == seen else 0


@exported_cold
def due_settle(word: int, claim: int, due: int) -> int:
    """All was looked at: 1, or 0 if something was noted meanwhile, or another has claimed it."""
    return int(compare_exchange(word, claim, due & ~DUE_CLAIMED) == claim)
