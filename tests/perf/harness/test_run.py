"""Real runs, tiny: they are checked, they end, and they leave nothing behind."""

import os
from collections.abc import Iterator
from multiprocessing import active_children

import pytest

from shmbroker.perf.harness.contest import Contest
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.run import RunFailed, run
from shmbroker.perf.harness.task import Task
from shmbroker.perf.harness.testing import CorruptingPipe, SilentPipe
from shmbroker.perf.harness.verdict import SumsDiffer
from shmbroker.perf.machine.workspace import SHM
from shmbroker.perf.peers.mp_pipe import MpPipe
from shmbroker.perf.scenarios.topologies import TOPOLOGIES

PING_PONG = Plan(Task(TOPOLOGIES["ping-pong"], 64, "single"), warmup=5, groups=2, singles=7)
STREAM = Plan(Task(TOPOLOGIES["one-to-one"], 64, "single"), count=300)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    assert not active_children()
    assert not list(SHM.glob(f"shmbperf-{os.getpid()}-*"))  # others may be measuring


def test_ping_pong_over_a_pipe() -> None:
    record = run(MpPipe(), PING_PONG)
    assert record.figures.keys() >= {"p50_ns", "p99_ns"}


def test_one_to_one_over_a_pipe() -> None:
    record = run(MpPipe(), STREAM)
    assert record.figures["messages_per_s"] > 0
    assert not record.left_behind


def test_a_wrong_checksum_makes_the_run_fail() -> None:
    with pytest.raises(SumsDiffer):
        run(CorruptingPipe(), STREAM)


def test_the_watchdog_ends_a_run_that_does_not_finish() -> None:
    with pytest.raises(RunFailed, match="watchdog"):
        run(SilentPipe(), STREAM, limit_s=3.0)


def test_a_contest_notes_failures_and_goes_on() -> None:
    contest = Contest(
        topologies=[TOPOLOGIES["one-to-one"]],
        sizes=[64],
        modes=["single"],
        peers=[MpPipe(), CorruptingPipe()],
        rounds=1,
        target_s=0.01,
        tell=lambda text: None,
    )
    (case,) = contest.cases()
    contest.hold(case)
    pipe, corrupting = case.entries
    assert pipe.medians()
    assert not pipe.failures
    assert corrupting.failures
