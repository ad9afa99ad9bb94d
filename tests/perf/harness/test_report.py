"""The report's arithmetic: figures of a run, medians over rounds, ratios within rounds."""

import numpy as np
import pytest

from shmbroker.perf.harness.case import Case, Entry
from shmbroker.perf.harness.figures import round_trip_figures, stream_figures
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.report import aligned, case_table
from shmbroker.perf.harness.role_result import RoleResult
from shmbroker.perf.harness.run import RunRecord
from shmbroker.perf.harness.task import Task
from shmbroker.perf.peers.mp_pipe import MpPipe
from shmbroker.perf.peers.mp_queue import MpQueue
from shmbroker.perf.scenarios.topologies import TOPOLOGIES

TASK = Task(TOPOLOGIES["ping-pong"], 64, "single")
PLAN = Plan(TASK)


def entry(peer: MpPipe | MpQueue, *p50s: float | None) -> Entry:
    rounds = [RunRecord(PLAN, {"p50_ns": p50, "p99_ns": 2 * p50}) if p50 else None for p50 in p50s]
    return Entry(peer, TASK, PLAN, rounds)


def test_round_trips_are_the_median_of_groups_and_the_99th_percentile_of_singles() -> None:
    groups, singles = np.array([100, 300, 200_000]), np.arange(101)
    figures = round_trip_figures(RoleResult(0, 1, groups_ns=groups, singles_ns=singles))
    assert figures["p50_ns"] == 3.0
    assert figures["p99_ns"] == 99.0


def test_a_stream_lasts_from_the_first_start_to_the_last_arrival() -> None:
    plan = Plan(Task(TOPOLOGIES["three-to-one"], 1000, "single"), count=100)
    senders = [RoleResult(500, 600), RoleResult(0, 90), RoleResult(100, 200)]
    figures = stream_figures(plan, [*senders, RoleResult(0, 3000)])
    assert figures["messages_per_s"] == pytest.approx(300 / 3e-6)
    assert figures["gb_per_s"] == pytest.approx(100.0)


def test_a_loan_moves_no_bytes() -> None:
    plan = Plan(Task(TOPOLOGIES["one-to-one"], 1000, "loan"), count=100)
    assert "gb_per_s" not in stream_figures(plan, [RoleResult(0, 1), RoleResult(0, 9)])


def test_a_failed_round_is_left_out_of_the_median() -> None:
    assert entry(MpPipe(), 10.0, None, 30.0).medians()["p50_ns"] == 20.0
    assert entry(MpPipe(), None).medians() == {}


def test_a_ratio_is_the_median_of_the_ratios_of_each_round() -> None:
    mine, theirs = entry(MpPipe(), 10.0, 100.0, 7.0, 4.0), entry(MpQueue(), 5.0, 100.0, None, 1.0)
    assert mine.ratios_to(theirs)["p50_ns"] == 2.0  # of 2, 1 and 4; round 3 has no reference


def test_the_table_shows_medians_ratios_and_failures() -> None:
    mine, theirs = entry(MpPipe(), 10.0, 20.0), entry(MpQueue(), 5.0, 10.0)
    mine.failures.append("round 3: died")
    shown = case_table(Case(TASK.topology, 64, [mine, theirs]), against="mp-queue")
    assert "x mp-queue/single" in shown
    assert ["mp-pipe", "single", "python", "none", "15.0", "30.0", "2.00", "0"] in [
        line.split() for line in shown.splitlines()
    ]
    assert "FAILED ping-pong, 64 B, mp-pipe/single: round 3: died" in shown


def test_columns_are_aligned() -> None:
    lines = aligned([("a", "b", "c", "1"), ("aa", "b", "c", "100")])
    assert lines == ["a   b  c    1", "aa  b  c  100"]
