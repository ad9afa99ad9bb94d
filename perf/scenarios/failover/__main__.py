"""python -m shmbroker.perf.scenarios.failover: how long nothing is confirmed after a kill.

A program publishes to a durable queue and waits for each confirm, another consumes; the live is
killed with -9 at a random moment, one of three that wait takes over, and the killed one comes back
to wait.  See trial.py.  Told is the time from each kill to the next confirm, which is from the new
live; every message that was confirmed is consumed, once and in order, or the verdict is missed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from shmbroker.ipc.latency.latency import Histogram
from shmbroker.perf.harness.report import aligned
from shmbroker.perf.machine.histograms import LADDER, histogram_of, ladder, rung
from shmbroker.perf.machine.workspace import unique_token
from shmbroker.perf.scenarios.command import DURATION, FILE, POSITIVE, option
from shmbroker.perf.scenarios.failover.trial import Outcome, failover
from shmbroker.perf.scenarios.findings import Findings, Verdict
from shmbroker.perf.scenarios.scenario import Scenario
from shmbroker.perf.scenarios.steps import Steps

if TYPE_CHECKING:
    from shmbroker.perf.scenarios.page import Page

KILLS, ROUNDS = 20, 5
AT_REST_SECONDS = 0.3
PROMISED_MS = {50.0: 5.0, 99.0: 25.0}
NAME = "failover, kill to confirm"


def measure(
    steps: Steps, kills: int, rounds: int, at_rest: float, seed: int | None, folder: Path
) -> Findings:
    seed = random.randrange(1 << 32) if seed is None else seed
    steps.expect(rounds * kills)
    outcomes = []
    for number in range(rounds):

        def tell(kill: int, of: int = number) -> None:
            steps.next(f"round {of + 1}, kill {kill + 1}")

        with TemporaryDirectory(prefix="shmbroker-failover-", dir=folder.absolute()) as inside:
            outcomes.append(
                failover(
                    Path(inside),
                    unique_token("failover"),
                    kills,
                    seed + number,
                    at_rest=at_rest,
                    tell=tell,
                )
            )
    histogram = histogram_of(nanoseconds(outcomes))
    return Findings(
        table(outcomes, histogram),
        [
            {
                "name": NAME,
                "rounds": [
                    {"p50_ns": histogram_of(nanoseconds([each])).percentile(50)}
                    for each in outcomes
                ],
            }
        ],
        "kill-confirm",
        partial(draw, outcomes, histogram),
        {NAME: histogram},
        verdicts(histogram, median(each.sync for each in outcomes)),
        [f"seed {seed + at}: {fault}" for at, each in enumerate(outcomes) for fault in each.faults],
        {
            "seed": seed,
            "kills": histogram.total,
            "confirmed": sum(len(each.confirmed) for each in outcomes),
            "lost": sum(each.lost for each in outcomes),
            "twice": sum(each.twice for each in outcomes),
            "ladder": ladder(histogram),
            "pauses_ns": [nanoseconds([each]) for each in outcomes],
            "fdatasync_ns": median(each.sync for each in outcomes) * 1e9,
        },
    )


def nanoseconds(outcomes: Sequence[Outcome]) -> list[int]:
    """From each kill to the next confirm."""
    return [int(pause * 1e9) for each in outcomes for pause in each.pauses]


def account(outcomes: Sequence[Outcome]) -> str:
    confirmed, lost, twice = (
        sum(counts)
        for counts in zip(
            *((len(each.confirmed), each.lost, each.twice) for each in outcomes), strict=True
        )
    )
    sync = median(each.sync for each in outcomes)
    return (
        f"{confirmed:,} messages confirmed and consumed, {lost} lost, {twice} twice; "
        f"one fdatasync of this disk {sync * 1e3:.2f} ms"
    )


def verdicts(histogram: Histogram, sync: float) -> list[Verdict]:
    """What is promised, above one sync of the disk."""
    given = []
    for percent, most in PROMISED_MS.items():
        above = histogram.percentile(percent) / 1e6 - sync * 1e3
        text = f"{rung(percent)} from kill to confirm: {above:.1f} ms above one fdatasync"
        given.append(Verdict(f"{text} (at most {most:g})", above, most, above <= most))
    return given


def table(outcomes: Sequence[Outcome], histogram: Histogram) -> str:
    header = ("kill to confirm", "", "", "kills", *(f"{rung(each)} ms" for each in LADDER))
    steps = (f"{histogram.percentile(each) / 1e6:,.2f}" for each in LADDER)
    return "\n".join([*aligned([header, ("", "", "", f"{histogram.total}", *steps)]),
                      account(outcomes)])  # fmt: skip


def draw(outcomes: Sequence[Outcome], histogram: Histogram, page: Page) -> None:
    from shmbroker.perf.scenarios import pictures
    from shmbroker.perf.scenarios.page import Drawing, latency

    title = "From kill -9 of the live to the next confirm"
    pauses = nanoseconds(outcomes)
    drawn = pictures.distribution(pauses, title, "kills")
    page.draw(Drawing("failover", "how many kills were over after which time", drawn))
    curve = {"kill to confirm": pictures.Curve.of(histogram)}
    drawn = pictures.percentile_curves(curve, f"{title}, by percentile", of="kills")
    page.draw(Drawing("failover percentiles", "time by percentile of kills", drawn))
    page.note(account(outcomes))
    page.table(
        ["kills", *map(rung, LADDER)],
        [[histogram.total, *(latency(histogram.percentile(each)) for each in LADDER)]],
    )


SCENARIO = Scenario(
    "failover",
    help="""Measure how long a failover takes: from a kill to the next confirm.

    Exits with 1 if a confirmed message is lost or consumed twice.
    """,
    examples="""
    shmbroker bench failover --folder /var/lib --html failover.html
    shmbroker bench failover --kills 100 --rounds 1 --hlog failover.hlog
    shmbroker bench failover --compare before.json
    """,
    options=(
        option("--kills", type=POSITIVE, default=KILLS, show_default=True, metavar="N",
               help="Kills in each round."),
        option("--rounds", type=POSITIVE, default=ROUNDS, show_default=True,
               help="Rounds, each with new instances."),
        option("--at-rest", type=DURATION, default=AT_REST_SECONDS,
               help="Time between a backup being ready and the kill.  [300ms]"),
        option("--seed", type=click.IntRange(min=0), metavar="N",
               help="Seed of the moments of the kills.  [random]"),
        option("--folder", type=FILE, default=".", metavar="DIR", help="Folder of the store."),
    ),
    measure=measure,
    pinning="none: as instances run",
    quick=("--kills=5", "--rounds=1"),
)  # fmt: skip
COMMAND = SCENARIO.command
main = COMMAND.main

if __name__ == "__main__":
    sys.exit(main())
