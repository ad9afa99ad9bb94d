"""Some kills of a live that has a replica; `make crash` has more."""

from __future__ import annotations

from pathlib import Path

from tests.crash.replicas import play
from tests.crash.test_failover import seed

KILLS = 20


def test_what_was_replicated_is_there_after_each_takeover(tmp_path: Path) -> None:
    outcome = play(tmp_path, KILLS, seed())
    print(outcome)  # noqa: T201  # pytest -s shows it
    assert not outcome.faults, outcome
    assert outcome.kills == KILLS
    assert outcome.confirmed > KILLS
