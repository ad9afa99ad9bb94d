"""python -m shmbroker.perf.scenarios.open_loop: latency at a fixed rate, and the highest rate.

    producer, on a timetable ──► queue ──► consumer, measures from when each message was due

A producer that waits for its turn (a closed loop) sends less while the broker is slow, and so
measures the slow moments less often than their victims feel them: coordinated omission.  Here each
message counts from when it was due, whoever is to blame that it comes late.

Rates rise until the broker no longer follows; the knee is the highest at which it did, and p99 was
within ten times that of the lowest rate.  Each rate is run several times, with the others in
between; percentiles are of all its runs.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import median
from typing import TYPE_CHECKING

import click

from shmbroker import connect, vhost
from shmbroker.ipc.latency.latency import Histogram
from shmbroker.perf.harness.report import aligned
from shmbroker.perf.machine.child import child
from shmbroker.perf.machine.client import Loops
from shmbroker.perf.machine.histograms import LADDER, histogram_of, ladder, merged, rung
from shmbroker.perf.machine.pinning import pin
from shmbroker.perf.machine.workspace import unique_token
from shmbroker.perf.scenarios.command import DURATION, POSITIVE, option, several
from shmbroker.perf.scenarios.findings import Findings
from shmbroker.perf.scenarios.scenario import Scenario
from shmbroker.perf.scenarios.steps import Steps

if TYPE_CHECKING:
    from shmbroker.perf.scenarios.page import Page

RATES = (10_000, 100_000, 500_000, 1_000_000, 2_000_000, 4_000_000)
SECONDS, ROUNDS = 1.0, 3
SPIN_SECONDS = 1.0
SLOTS = 65536
LEAD_NS = 100_000_000  # both are ready before the first message is due
PATIENCE = 60.0
FOLLOWS, KNEE = 0.98, 10
BODY = struct.Struct("q56x")
NEAR_NS = 200_000


@dataclass(frozen=True)
class Pace:
    """How a run is to go."""

    rate: int
    seconds: float = SECONDS
    burst: int = 1
    client: str = "c"
    stall: float = 0.0
    """The consumer does nothing for so long, half way through."""

    @property
    def count(self) -> int:
        return max(self.burst, int(self.rate * self.seconds))

    def __str__(self) -> str:
        burst = f" in bursts of {self.burst}" if self.burst > 1 else ""
        return f"{self.client}, {self.rate:,}/s{burst}"


@dataclass(frozen=True)
class Run:
    """One run: how long each message took since it was due, and how many came a second."""

    histogram: Histogram
    achieved: float


# --- the two loops, in C and in Python ------------------------------------------------------------


class InC:
    """The loops of native/paced.c."""

    def __init__(self, token: str) -> None:
        self._loops = Loops("paced.c", token, SPIN_SECONDS)

    def produce(self, pace: Pace, start: int) -> None:
        self._loops.run("paced_produce", pace.count, pace.burst, 1e9 / pace.rate, start)

    def consume(self, pace: Pace) -> tuple[array[int], int]:
        took, last = array("q", bytes(8 * pace.count)), array("q", [0])
        stall = (pace.count // 2, int(pace.stall * 1e9))
        self._loops.run("paced_consume", pace.count, *stall, took, last)
        return took, last[0]


class InPython:
    def __init__(self, token: str) -> None:
        self._queue = connect(f"shm://{token}", spin=SPIN_SECONDS).queue("paced")

    def produce(self, pace: Pace, start: int) -> None:
        publish, clock, gap = self._queue.publish, time.monotonic_ns, 1e9 / pace.rate
        for each in range(pace.count):
            due = start + int(gap * (each // pace.burst * pace.burst))
            while (left := due - clock()) > 0:
                if left > NEAR_NS:
                    time.sleep((left - NEAR_NS / 2) / 1e9)
            publish(BODY.pack(due), timeout=PATIENCE)

    def consume(self, pace: Pace) -> tuple[array[int], int]:
        receive, clock, now = self._queue.receive, time.monotonic_ns, 0
        took = array("q", bytes(8 * pace.count))
        for each in range(pace.count):
            if each == pace.count // 2:
                time.sleep(pace.stall)
            (due,) = BODY.unpack(receive(timeout=PATIENCE))
            now = clock()
            took[each] = now - due
        return took, now


CLIENTS: dict[str, Callable[[str], InC | InPython]] = {"c": InC, "python": InPython}


def run(pace: Pace) -> Run:
    token = unique_token("open-loop")
    allowed = os.sched_getaffinity(0)
    with connect(f"shm://{token}", create=True) as broker:
        broker.declare_queue("paced", slots=SLOTS)
    client = CLIENTS[pace.client]
    start = time.monotonic_ns() + LEAD_NS

    def produce() -> None:
        pin(1)
        client(token).produce(pace, start)

    try:
        with child(produce):
            pin(0)
            took, last = client(token).consume(pace)
    finally:
        os.sched_setaffinity(0, allowed)
        vhost.delete(token, force=True)
    return Run(histogram_of(took), pace.count / ((last - start) / 1e9))


# --- what is told ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """All runs of one pace."""

    pace: Pace
    runs: Sequence[Run]

    @cached_property
    def histogram(self) -> Histogram:
        return merged([each.histogram for each in self.runs])

    @property
    def achieved(self) -> float:
        return median(each.achieved for each in self.runs)

    @property
    def follows(self) -> bool:
        return self.achieved >= FOLLOWS * self.pace.rate

    def row(self) -> tuple[str, ...]:
        told = self.histogram
        ladder = (f"{told.percentile(each) / 1e3:,.2f}" for each in LADDER)
        return (
            str(self.pace),
            "" if self.follows else "behind",
            "",
            f"{self.achieved:,.0f}/s",
            *ladder,
        )

    def as_json(self) -> dict[str, object]:
        return {
            "name": f"open-loop {self.pace}",
            "follows": self.follows,
            "rounds": [
                {"messages_per_s": each.achieved} | ladder(each.histogram) for each in self.runs
            ],
        }


def knee(cases: Sequence[Case]) -> Case | None:
    """The highest rate that the broker followed, with p99 within ten times that of the lowest."""
    bound = KNEE * cases[0].histogram.percentile(99)
    return next(
        (
            each
            for each in sorted(cases, key=lambda case: -case.pace.rate)
            if each.follows and each.histogram.percentile(99) <= bound
        ),
        None,
    )


def table(cases: Sequence[Case]) -> str:
    header = ("pace", "", "", "achieved", *(f"{rung(each)} us" for each in LADDER))
    return "\n".join([*aligned([header, *(each.row() for each in cases)]), knee_told(cases)])


def knee_told(cases: Sequence[Case]) -> str:
    found = knee(cases)
    return f"knee: {found.pace if found else 'below the lowest rate'}"


def draw(cases: Sequence[Case], page: Page) -> None:
    from shmbroker.perf.scenarios import pictures
    from shmbroker.perf.scenarios.page import Drawing, Number, latency

    page.subheading("Latency from when a message was due")
    curves = {str(each.pace): pictures.Curve.of(each.histogram) for each in cases}
    drawn = pictures.percentile_curves(curves, "Latency by percentile, for each rate")
    page.draw(Drawing("percentiles", "latency by percentile, a curve for each rate", drawn))
    page.subheading("How far the rate can go")
    percentiles = {
        rung(point): [each.histogram.percentile(point) for each in cases]
        for point in (50.0, 99.0, 99.9)
    }
    drawn = pictures.rate_curves(
        [each.achieved for each in cases], percentiles, "Latency by messages a second"
    )
    page.draw(Drawing("knee", "latency by rate", drawn))
    page.note(f"{knee_told(cases).capitalize()}: the highest rate that was followed with p99 "
              f"within {KNEE} times that of the lowest.")  # fmt: skip
    page.table(
        ["pace", "achieved", *map(rung, LADDER)],
        [
            [
                str(each.pace), Number(f"{each.achieved:,.0f}/s", is_bad=not each.follows),
                *(latency(each.histogram.percentile(point)) for point in LADDER),
            ]
            for each in cases
        ],
    )  # fmt: skip


def measure(
    steps: Steps, rates: Sequence[int], client: str, burst: int, seconds: float, rounds: int,
    stall: float,
) -> Findings:  # fmt: skip
    paces = [Pace(rate, seconds, burst, client, stall) for rate in sorted(rates or RATES)]
    runs: list[list[Run]] = [[] for _ in paces]
    steps.expect(rounds * len(paces))
    for number in range(rounds):
        for pace, of in zip(paces, runs, strict=True):
            steps.next(f"round {number + 1} of {rounds}: {pace}")
            of.append(run(pace))
    cases = [Case(pace, of) for pace, of in zip(paces, runs, strict=True)]
    found = knee(cases)
    return Findings(
        table(cases),
        [each.as_json() for each in cases],
        "due-taken",
        partial(draw, cases),
        {f"open-loop {each.pace}": each.histogram for each in cases},
        details={"knee": found and found.pace.rate},
    )


SCENARIO = Scenario(
    "open-loop",
    help="""Measure latency at fixed rates, up to the rate that is too high.

    Latency counts from the time at which a message was due, not from when it was sent.
    """,
    examples="""
    shmbroker bench open-loop --html open-loop.html
    shmbroker bench open-loop --rate 100000 --rate 1000000 --seconds 5s --json after.json
    shmbroker bench open-loop --client python --rate 1000 --burst 100
    shmbroker bench open-loop --rate 100000 --rounds 8 --compare before.json
    """,
    options=(
        several("--rate", "rates", type=POSITIVE, metavar="N",
                help="Messages a second.  [10,000 to 4,000,000]"),
        option("--client", type=click.Choice(sorted(CLIENTS)), default="c", show_default=True,
               help="Language of the loops."),
        option("--burst", type=POSITIVE, default=1, metavar="N", help="Messages due at once."),
        option("--seconds", type=DURATION, default=SECONDS, help="Length of a run.  [1s]"),
        option("--rounds", type=POSITIVE, default=ROUNDS, show_default=True,
               help="Runs of each rate, in turns."),
        option("--stall", type=DURATION, default=0.0,
               help="Stop the consumer for this long, half way through."),
    ),
    measure=measure,
    pinning="the producer and the consumer each on a processor of its own",
    full=("--rounds=5", "--seconds=2s"),
    quick=("--rounds=1", "--seconds=300ms"),
)  # fmt: skip
COMMAND = SCENARIO.command
main = COMMAND.main

if __name__ == "__main__":
    sys.exit(main())
