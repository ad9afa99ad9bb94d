"""Some kills of brokers whose queues follow others; `make crash` has more."""

from __future__ import annotations

from pathlib import Path

from tests.crash.queue_replicas import play
from tests.crash.test_failover import seed

KILLS = 6


def test_a_replica_is_never_half_and_equal_in_the_end(tmp_path: Path) -> None:
    outcome = play(tmp_path, KILLS, seed(), has_backups=False)
    print(outcome)  # noqa: T201  # pytest -s shows it
    assert not outcome.faults, outcome
    assert outcome.kills == KILLS
    assert outcome.compared > KILLS
    assert outcome.looks > KILLS
    assert outcome.restored > 0
