"""Some steps on a disk that fills and empties, and with few descriptors; `make crash` has more."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import vhost_for_a_while
from tests.crash.scarce import on_a_small_disk, with_few_descriptors
from tests.crash.test_failover import seed


def test_a_disk_that_fills_and_empties_loses_nothing(tmp_path: Path) -> None:
    with vhost_for_a_while() as vhost:
        outcome = on_a_small_disk(tmp_path, vhost, 12, seed())
    print(outcome)  # noqa: T201  # pytest -s shows it
    assert not outcome.faults


def test_few_descriptors_are_enough_for_many_queues(tmp_path: Path) -> None:
    with vhost_for_a_while() as vhost:
        outcome = with_few_descriptors(tmp_path, vhost, 4, seed())
    print(outcome)  # noqa: T201  # pytest -s shows it
    assert not outcome.faults
