"""A hundred kills, and as many stops as fall between them; `make crash` has more."""

from __future__ import annotations

import os

from tests.crash.round import crash

KILLS = 100


def test_nothing_is_lost_whoever_is_killed() -> None:
    given = os.environ.get("SHMBROKER_CRASH_SEED")
    outcome = crash(KILLS, int(given) if given else None)
    assert outcome.kills == KILLS
    assert outcome.stops > 0
    assert outcome.tally.confirmed > KILLS  # the fleet was at work
    assert outcome.tally.redelivered > 0
