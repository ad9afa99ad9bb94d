"""Calibration: how much a peer must do so that a run takes about as long as it should.

Two probes: a tiny one, because nothing is known yet, and from what it says one long enough to
be past the first touch of every page. Counts differ between peers, times do not.
"""

import os
from collections.abc import Callable
from dataclasses import replace

from shmbroker.perf.harness.figures import Figures
from shmbroker.perf.harness.plan import GROUP_LENGTH, Plan
from shmbroker.perf.harness.tally import LARGE_BYTES
from shmbroker.perf.harness.task import Task

Probe = Callable[[Plan], Figures]

PROBE_SHARE = 0.2
SHARES = {"warmup": 0.15, "groups": 0.55, "singles": 0.3}
GROUPS = (5, 20_000)
SINGLES = (200, 100_000)
COUNT_MIN = 64


def calibrated(task: Task, target_s: float, probe: Probe) -> Plan:
    """The plan by which this peer's runs take about ``target_s``."""
    plan = first_plan(task)
    for seconds in (target_s * PROBE_SHARE, target_s):
        plan = scaled(plan, probe(plan), seconds)
    return plan


def first_plan(task: Task) -> Plan:
    crowded = len(task.topology.seats()) > len(os.sched_getaffinity(0))
    plan = Plan(task, crowded=crowded)
    if task.topology.measures_latency:
        return replace(plan, warmup=20, groups=1, singles=50)
    return replace(plan, count=COUNT_MIN if task.size >= LARGE_BYTES else 4 * plan.batch)


def scaled(plan: Plan, figures: Figures, seconds: float) -> Plan:
    """The same plan, made to take that long by a peer with these figures."""
    if plan.task.topology.measures_latency:
        trips = seconds * 1e9 / max(figures["p50_ns"], 1.0)
        return replace(
            plan,
            warmup=int(trips * SHARES["warmup"]),
            groups=_within(trips * SHARES["groups"] / GROUP_LENGTH, GROUPS),
            singles=_within(trips * SHARES["singles"], SINGLES),
        )
    each = seconds * figures["messages_per_s"] / plan.task.topology.senders
    count = max(int(each), COUNT_MIN)
    if plan.task.mode == "batch":
        count = max(count // plan.batch, 1) * plan.batch
    return replace(plan, count=count)


def _within(wanted: float, bounds: tuple[int, int]) -> int:
    lowest, highest = bounds
    return min(max(int(wanted), lowest), highest)
