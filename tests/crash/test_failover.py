"""Ten kills of the live, and some stops; `make crash` has a hundred of each."""

from __future__ import annotations

import os
from pathlib import Path

from shmbroker.perf.machine.process import Process
from shmbroker.perf.scenarios.failover.trial import failover
from tests.conftest import vhost_for_a_while

KILLS = 10
STOPS = 3


def seed() -> int:
    given = os.environ.get("SHMBROKER_CRASH_SEED")
    return int(given) if given else int.from_bytes(os.urandom(4))


def test_what_was_confirmed_is_consumed_once_and_in_order(tmp_path: Path) -> None:
    with vhost_for_a_while() as vhost:
        outcome = failover(tmp_path, vhost, KILLS, seed())
    print(outcome)  # noqa: T201  # pytest -s shows the times
    assert outcome.consumed == outcome.confirmed


def test_a_live_that_hangs_is_replaced_and_confirms_nothing_more(tmp_path: Path) -> None:
    with vhost_for_a_while() as vhost:
        outcome = failover(
            tmp_path, vhost, STOPS, seed(), Process.stop, **{"ha.stall-limit": "250ms"}
        )
    print(outcome)  # noqa: T201  # pytest -s shows the times
    assert outcome.consumed == outcome.confirmed
