"""What the machine was able to do when something was measured: a figure without it says nothing.

The raw limits are those of no messenger: one cache line handed to and fro, a futex, a memcpy, a
page overwritten and synced.  The jitter is what the machine itself adds to anything: the gaps that
a loop sees which only looks at the clock.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from shmbroker.ipc.latency.latency import Histogram
from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.run import run
from shmbroker.perf.harness.task import Task
from shmbroker.perf.machine.bare_file import sync_seconds
from shmbroker.perf.machine.histograms import histogram_of
from shmbroker.perf.raw.cacheline import RawCacheline, RawFutex
from shmbroker.perf.raw.memcpy import RawMemcpy
from shmbroker.perf.scenarios.topologies import TOPOLOGIES

JITTER_SECONDS = 0.5
TRIP = Task(TOPOLOGIES["ping-pong"], 64, "single")
STREAM = Task(TOPOLOGIES["one-to-one"], 1 << 20, "single")
LIMITS: dict[str, tuple[Peer, Plan, str]] = {
    "raw_cacheline_ns": (
        RawCacheline(),
        Plan(TRIP, warmup=1000, groups=500, singles=200),
        "p50_ns",
    ),
    "raw_futex_ns": (RawFutex(), Plan(TRIP, warmup=50, groups=5, singles=200), "p50_ns"),
    "raw_memcpy_gb_per_s": (RawMemcpy(), Plan(STREAM, count=500), "gb_per_s"),
}


@dataclass(frozen=True)
class Conditions:
    load: float
    limits: dict[str, float]
    jitter: Histogram

    def __str__(self) -> str:
        told = self.limits
        gaps = ", ".join(
            f"{name} {self.jitter.percentile(percent) / 1e3:,.1f}"
            for name, percent in (("p99.9", 99.9), ("p99.99", 99.99), ("max", 100.0))
        )
        return (
            f"load {self.load:.1f}; raw limits: cache line {told['raw_cacheline_ns']:,.0f} ns, "
            f"futex {told['raw_futex_ns'] / 1e3:,.1f} us, "
            f"memcpy {told['raw_memcpy_gb_per_s']:.1f} GB/s, "
            f"fdatasync {told['fdatasync_ns'] / 1e3:,.0f} us; gaps of the machine itself: {gaps} us"
        )

    def as_json(self) -> dict[str, object]:
        gaps = {f"p{each:g}_ns": self.jitter.percentile(each) for each in (50, 99, 99.9, 99.99)}
        return {
            "load": self.load,
            "limits": self.limits,
            "jitter": gaps | {"max_ns": self.jitter.maximum},
        }


def conditions_now(folder: Path) -> Conditions:
    """Takes some 3 seconds; the folder is on the disk that is to be measured."""
    load = os.getloadavg()[0]
    limits = {name: run(peer, plan).figures[of] for name, (peer, plan, of) in LIMITS.items()}
    with TemporaryDirectory(prefix="shmbroker-perf-", dir=folder) as inside:
        limits["fdatasync_ns"] = sync_seconds(Path(inside)) * 1e9
    return Conditions(load, limits, jitter())


def jitter(seconds: float = JITTER_SECONDS) -> Histogram:
    """Looking at the clock again and again."""
    gaps, now = [], time.monotonic_ns()
    end = now + int(seconds * 1e9)
    while now < end:
        before, now = now, time.monotonic_ns()
        gaps.append(now - before)
    return histogram_of(gaps)
