"""The due word: when a schedule is to be looked at next, and who looks.

One word, on which all who schedule and all who look agree without a lock:

    t             nothing is due before t, of all that was noted
    t, claimed    somebody looks; whoever finds the word so after t does so instead
    0             nothing is scheduled

    note    publish first, then lower the word to the message's time, and take away the claim
    claim   the exact word that was seen, to claimed; then look at everything
    settle  exactly our claim, to the time of the next message

A message whose note came before the claim was there when the look began.  A note after it takes the
claim away, so settling fails, and who looks goes on looking.  Who claims again in the middle of its
look overwrites such a note, and so looks once more before it settles for later.  Who dies or is
stopped in the middle leaves a claim, which somebody else takes over when its time has come.  Who
dies between publishing and its note is repaired, which notes that something may be
due now.
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
