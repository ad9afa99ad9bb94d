"""python -m shmbroker.perf.scenarios.failover: how long nothing is confirmed when the live changes.

A program publishes to a durable queue and waits for each confirm, another consumes; the live is
killed with -9 at a random moment, one of three that wait takes over, and the killed one comes back
to wait.  After each kill the new live is stopped, and hands over.  See trial.py.  Told is the time
from each kill to the next confirm, which is from the new live, and the longest that the publisher
waited at each handover; every message that was confirmed is consumed, once and in order, or the
verdict is missed.
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
HANDOVERS_PROMISED = 3.0
"""Of a failover's median."""
NAME = "failover, kill to confirm"
HANDOVER = "handover, longest wait for a confirm"


def measure(
    steps: Steps, kills: int, rounds: int, at_rest: float, seed: int | None, folder: Path
) -> Findings:
    seed = random.randrange(1 << 32) if seed is None else seed
    steps.expect(2 * rounds * kills)
    outcomes = []
    for number in range(rounds):

        def tell(change: int, of: int = number) -> None:
            what = ("kill", "handover")[change % 2]
            steps.next(f"round {of + 1}, {what} {change // 2 + 1}")

        with TemporaryDirectory(prefix="shmbroker-failover-", dir=folder.absolute()) as inside:
            outcomes.append(
                failover(
                    Path(inside),
                    unique_token("failover"),
                    kills,
                    seed + number,
                    hands_over=True,
                    at_rest=at_rest,
                    tell=tell,
                )
            )
    histograms = {
        NAME: histogram_of(nanoseconds(outcomes)),
        HANDOVER: histogram_of(waits(outcomes)),
    }
    histogram = histograms[NAME]
    return Findings(
        table(outcomes, histograms),
        [
            {
                "name": name,
                "rounds": [
                    {"p50_ns": histogram_of(times([each])).percentile(50)} for each in outcomes
                ],
            }
            for name, times in ((NAME, nanoseconds), (HANDOVER, waits))
        ],
        "kill-confirm",
        partial(draw, outcomes, histograms),
        histograms,
        [
            *verdicts(histogram, median(each.sync for each in outcomes)),
            handing_over(histogram, histograms[HANDOVER]),
        ],
        [f"seed {seed + at}: {fault}" for at, each in enumerate(outcomes) for fault in each.faults],
        {
            "seed": seed,
            "kills": histogram.total,
            "confirmed": sum(len(each.confirmed) for each in outcomes),
            "lost": sum(each.lost for each in outcomes),
            "twice": sum(each.twice for each in outcomes),
            "ladder": ladder(histogram),
            "pauses_ns": [nanoseconds([each]) for each in outcomes],
            "handovers_ns": [waits([each]) for each in outcomes],
            "fdatasync_ns": median(each.sync for each in outcomes) * 1e9,
        },
    )


def nanoseconds(outcomes: Sequence[Outcome]) -> list[int]:
    """From each kill to the next confirm."""
    return [int(pause * 1e9) for each in outcomes for pause in each.pauses]


def waits(outcomes: Sequence[Outcome]) -> list[int]:
    """Of each handover, the longest for a confirm."""
    return [int(wait * 1e9) for each in outcomes for wait in each.handovers]


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


def handing_over(failovers: Histogram, handovers: Histogram) -> Verdict:
    ratio = handovers.percentile(50) / failovers.percentile(50)
    most = HANDOVERS_PROMISED
    text = f"longest wait at a handover: {ratio:.2f} x a failover, medians (at most {most:g})"
    return Verdict(text, ratio, most, ratio <= most)


def table(outcomes: Sequence[Outcome], histograms: dict[str, Histogram]) -> str:
    header = ("", "", "", "times", *(f"{rung(each)} ms" for each in LADDER))
    rows = [
        (name, "", "", f"{of.total}", *(f"{of.percentile(each) / 1e6:,.2f}" for each in LADDER))
        for name, of in histograms.items()
    ]
    return "\n".join([*aligned([header, *rows]), account(outcomes)])


def draw(outcomes: Sequence[Outcome], histograms: dict[str, Histogram], page: Page) -> None:
    from shmbroker.perf.scenarios import pictures
    from shmbroker.perf.scenarios.page import Drawing, latency

    title = "From kill -9 of the live to the next confirm"
    pauses = nanoseconds(outcomes)
    drawn = pictures.distribution(pauses, title, "kills")
    page.draw(Drawing("failover", "how many kills were over after which time", drawn))
    curves = {name: pictures.Curve.of(each) for name, each in histograms.items()}
    drawn = pictures.percentile_curves(curves, "Changes of the live, by percentile", of="changes")
    page.draw(Drawing("failover percentiles", "time by percentile of changes", drawn))
    page.note(account(outcomes))
    page.table(
        ["", "times", *map(rung, LADDER)],
        [
            [name, each.total, *(latency(each.percentile(at)) for at in LADDER)]
            for name, each in histograms.items()
        ],
    )


SCENARIO = Scenario(
    "failover",
    help="""Measure how long a failover takes, and how long programs wait at a handover.

    Exits with 1 if a confirmed message is lost or consumed twice.
    """,
    examples="""
    shmbroker bench failover --folder /var/lib --html failover.html
    shmbroker bench failover --kills 100 --rounds 1 --hlog failover.hlog
    shmbroker bench failover --compare before.json
    """,
    options=(
        option("--kills", type=POSITIVE, default=KILLS, show_default=True, metavar="N",
               help="Kills in each round, and as many handovers."),
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
