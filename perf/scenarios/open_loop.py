"""python -m shmbroker.perf.scenarios.open_loop: latency at a fixed rate, and the highest rate.

    producer, on a timetable ──► queue ──► consumer, measures from when each message was due

A producer that waits for its turn (a closed loop) sends less while the broker is slow, and so
measures the slow moments less often than their victims feel them: coordinated omission.  Here each
message counts from when it was due, whoever is to blame that it comes late.

Each run is followed by one of the same pace through the bare ring (paced.py), and both are shown
side by side: what the machine stops, it stops there as well.

Rates rise until the broker no longer follows; the knee is the highest at which it did, and p99 was
within ten times that of the lowest rate, or of the bare ring at the same rate.  Each rate is run
several times, with the others in between; percentiles are of all its runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import median
from typing import TYPE_CHECKING

import click

from shmbroker.ipc.latency.latency import Histogram
from shmbroker.perf.harness.report import aligned
from shmbroker.perf.machine.histograms import LADDER, ladder, merged, rung
from shmbroker.perf.scenarios.command import DURATION, POSITIVE, option, several
from shmbroker.perf.scenarios.findings import Findings
from shmbroker.perf.scenarios.paced import CLIENTS, SECONDS, Pace, Run, run, run_bare
from shmbroker.perf.scenarios.scenario import Scenario
from shmbroker.perf.scenarios.steps import Steps

if TYPE_CHECKING:
    from shmbroker.perf.scenarios.page import Page

RATES = (10_000, 100_000, 500_000, 1_000_000, 2_000_000, 4_000_000)
ROUNDS = 3
FOLLOWS, KNEE = 0.98, 10


@dataclass(frozen=True)
class Runs:
    """Of one pace, through the same ring."""

    pace: Pace
    of: Sequence[Run]

    @cached_property
    def histogram(self) -> Histogram:
        return merged([each.histogram for each in self.of])

    @property
    def achieved(self) -> float:
        return median(each.achieved for each in self.of)

    @property
    def follows(self) -> bool:
        return self.achieved >= FOLLOWS * self.pace.rate

    def row(self, name: str) -> tuple[str, ...]:
        told = self.histogram
        steps = (f"{told.percentile(each) / 1e3:,.2f}" for each in LADDER)
        return (name, "" if self.follows else "behind", "", f"{self.achieved:,.0f}/s", *steps)

    def as_json(self) -> list[dict[str, float]]:
        return [{"messages_per_s": each.achieved} | ladder(each.histogram) for each in self.of]


@dataclass(frozen=True)
class Case:
    """All runs of one pace, and those of the bare ring between them."""

    pace: Pace
    ours: Runs
    bare: Runs

    @classmethod
    def of(cls, pace: Pace, ours: Sequence[Run], bare: Sequence[Run]) -> Case:
        return cls(pace, Runs(pace, ours), Runs(pace, bare))

    @property
    def name(self) -> str:
        return str(self.pace)

    @property
    def bare_name(self) -> str:
        return f"bare ring, {self.pace.timetable}"

    def both(self) -> tuple[tuple[str, Runs], ...]:
        return (self.name, self.ours), (self.bare_name, self.bare)

    def as_json(self) -> dict[str, object]:
        return {
            "name": f"open-loop {self.pace}",
            "follows": self.ours.follows,
            "rounds": self.ours.as_json(),
            "bare_rounds": self.bare.as_json(),
        }


def knee(cases: Sequence[Case]) -> Case | None:
    """The highest rate that the broker followed, with p99 within ten times that of the lowest, or
    of the bare ring: a machine that stops both has not found our limit."""
    lowest = cases[0].ours.histogram.percentile(99)
    return next(
        (
            each
            for each in sorted(cases, key=lambda case: -case.pace.rate)
            if each.ours.follows
            and each.ours.histogram.percentile(99)
            <= KNEE * max(lowest, each.bare.histogram.percentile(99))
        ),
        None,
    )


def table(cases: Sequence[Case]) -> str:
    header = ("pace", "", "", "achieved", *(f"{rung(each)} us" for each in LADDER))
    rows = [runs.row(name) for each in cases for name, runs in each.both()]
    return "\n".join([*aligned([header, *rows]), knee_told(cases)])


def knee_told(cases: Sequence[Case]) -> str:
    found = knee(cases)
    return f"knee: {found.pace if found else 'below the lowest rate'}"


def draw(cases: Sequence[Case], page: Page) -> None:
    from shmbroker.perf.scenarios import pictures
    from shmbroker.perf.scenarios.page import Drawing, Number, latency

    page.subheading("Latency from when a message was due")
    for name, of, runs in (
        ("percentiles", "Latency by percentile, for each rate", [each.ours for each in cases]),
        ("bare", "The bare ring at the same rates, in the same run", [each.bare for each in cases]),
    ):
        curves = {each.pace.timetable: pictures.Curve.of(each.histogram) for each in runs}
        page.draw(Drawing(name, of, pictures.percentile_curves(curves, of)))
    page.subheading("How far the rate can go")
    percentiles = {
        rung(point): [each.ours.histogram.percentile(point) for each in cases]
        for point in (50.0, 99.0, 99.9)
    }
    percentiles["bare ring, p99"] = [each.bare.histogram.percentile(99) for each in cases]
    drawn = pictures.rate_curves(
        [each.ours.achieved for each in cases], percentiles, "Latency by messages a second"
    )
    page.draw(Drawing("knee", "latency by rate", drawn))
    page.note(f"{knee_told(cases).capitalize()}: the highest rate that was followed with p99 "
              f"within {KNEE} times that of the lowest, or of the bare ring.")  # fmt: skip
    page.note("The bare ring is a cache line for each message, in C: what is as slow there is the "
              "machine's.")  # fmt: skip
    page.table(
        ["pace", "achieved", *map(rung, LADDER)],
        [
            [
                name, Number(f"{runs.achieved:,.0f}/s", is_bad=not runs.follows),
                *(latency(runs.histogram.percentile(point)) for point in LADDER),
            ]
            for each in cases
            for name, runs in each.both()
        ],
    )  # fmt: skip


def measure(
    steps: Steps, rates: Sequence[int], client: str, burst: int, seconds: float, rounds: int,
    stall: float,
) -> Findings:  # fmt: skip
    paces = [Pace(rate, seconds, burst, client, stall) for rate in sorted(rates or RATES)]
    ours: list[list[Run]] = [[] for _ in paces]
    bare: list[list[Run]] = [[] for _ in paces]
    steps.expect(rounds * len(paces))
    for number in range(rounds):
        for at, pace in enumerate(paces):
            steps.next(f"round {number + 1} of {rounds}: {pace}")
            ours[at].append(run(pace))
            bare[at].append(run_bare(pace))
    cases = list(map(Case.of, paces, ours, bare))
    found = knee(cases)
    return Findings(
        table(cases),
        [each.as_json() for each in cases],
        "due-taken",
        partial(draw, cases),
        {f"open-loop {name}": runs.histogram for each in cases for name, runs in each.both()},
        details={"knee": found and found.pace.rate},
    )


SCENARIO = Scenario(
    "open-loop",
    help="""Measure latency at fixed rates, up to the rate that is too high.

    Latency counts from the time at which a message was due, not from when it was sent.  A bare ring
    of cache lines runs at the same rates, in turns: what is as slow there is the machine's.
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
