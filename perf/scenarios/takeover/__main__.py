"""python -m shmbroker.perf.scenarios.takeover: what the loss of a replicated queue's broker costs.

Ours are a live, its backup and a witness; RabbitMQ has a quorum queue on three nodes, JetStream a
stream with three replicas.  All on this host, over loopback; ours with its usual encryption and
passwords, the peers with neither.  One program publishes 64 bytes to a durable queue and waits for
each confirm.  Who answers for the queue is killed, comes back, and has its copy again, time after
time; ours is stopped as well (a loss without a closed socket).  Told is the time from the blow to
the next confirm, and before that how long confirms take, one and many outstanding.  All that was
confirmed is there at the end, or it failed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from shmbroker.ipc.latency.latency import Histogram
from shmbroker.perf.harness.report import aligned
from shmbroker.perf.machine.debian import NotInstalled
from shmbroker.perf.machine.histograms import histogram_of
from shmbroker.perf.machine.size import format_size
from shmbroker.perf.replicated.group import Group
from shmbroker.perf.replicated.jetstream import JetStreamGroup
from shmbroker.perf.replicated.ours import Ours
from shmbroker.perf.replicated.rabbitmq import RabbitMqGroup
from shmbroker.perf.scenarios.command import FILE, POSITIVE, SIZE, one_of, option, several
from shmbroker.perf.scenarios.durable.contender import Contender
from shmbroker.perf.scenarios.findings import Findings, Verdict
from shmbroker.perf.scenarios.scenario import Scenario
from shmbroker.perf.scenarios.steps import Steps
from shmbroker.perf.scenarios.takeover.trial import BODY, Outcome, tried

if TYPE_CHECKING:
    from shmbroker.perf.scenarios.page import Page

PEERS: Final[dict[str, type[Group]]] = {each.name: each for each in (RabbitMqGroup, JetStreamGroup)}
KILLED, STOPPED = "SIGKILL", "SIGSTOP"
P50_MAX_MS, P99_MAX_MS = 25.0, 60.0
BOUND_MS: Final = 600.0
"""Three heartbeats of 200 ms, the default."""
STOPPED_MAX_MS: Final = BOUND_MS + 100
BACKLOG_MAX: Final = 1.2
RATE_MIN: Final = 10.0


def measure(
    steps: Steps, peers: Sequence[str], rounds: int, singles: int, many: int, blows: int,
    backlog: int, seed: int, folder: Path,
) -> Findings:  # fmt: skip
    chosen = [PEERS[name] for name in peers or PEERS]
    groups: list[Group] = [Ours(), *([Ours(backlog)] if backlog else []),
                           *(each() for each in chosen)]  # fmt: skip
    outcomes, left_out = [], []
    steps.expect(sum(2 + rounds + blows * (1 + each.told_of_silence) for each in groups))
    for group in groups:
        try:
            group.install()
        except NotInstalled as missing:
            left_out.append(f"{group.name} is left out: {missing}")
            continue
        with tempfile.TemporaryDirectory(prefix="shmbroker-takeover-", dir=folder) as inside:
            title = titled(group)
            outcome = tried(
                group, Path(inside), rounds, singles, many, blows, seed,
                lambda what, of=title: steps.next(f"{of}: {what}"),  # type: ignore[misc]
            )  # fmt: skip
        outcome.contender.name = title
        outcomes.append(outcome)
    return Findings(
        "\n".join([table(outcomes), *left_out]),
        [
            {"name": f"takeover {each.contender.name}",
             "rounds": [{"p50_ns": one.median_ns, "messages_per_s": one.per_s}
                        for one in each.contender.slices.get(BODY.size, [])]}
            for each in outcomes
        ],
        "blow-confirm",
        partial(draw, outcomes),
        {
            f"takeover {each.contender.name}, {kind}": histogram_of(pauses)
            for each in outcomes for kind, pauses in each.pauses.items() if pauses
        },
        verdicts(outcomes),
        [f"{each.contender.name}: {fault}" for each in outcomes for fault in each.faults],
        {"seed": seed, "folder": str(folder.absolute())},
    )  # fmt: skip


def titled(group: Group) -> str:
    backlog = group.backlog if isinstance(group, Ours) else 0
    return f"{group.name}, {format_size(backlog)} waiting" if backlog else group.name


def table(outcomes: Iterable[Outcome]) -> str:
    rows: list[tuple[str, ...]] = [
        ("64 B, confirmed by all that must", "version", "p50 us", "p99 us", "many/s", "blow", "n",
         "p50 ms", "p99 ms", "max ms", "lost", "twice")
    ]  # fmt: skip
    for each in outcomes:
        first = (each.contender.name, each.contender.version, *confirms(each.contender))
        for kind, pauses in each.pauses.items():
            rows.append((*first, kind, *paused(pauses), f"{each.lost}", f"{each.twice}"))
            first = ("", "", "", "", "")
        if not each.pauses:
            rows.append((*first, *[""] * 7))
    return "\n".join(aligned(rows))


def confirms(of: Contender) -> tuple[str, str, str]:
    if not of.slices.get(BODY.size):
        return "", "", ""
    p50, p99 = (of.wait_ns(BODY.size, percent) / 1e3 for percent in (50, 99))
    return f"{p50:,.0f}", f"{p99:,.0f}", f"{of.per_s(BODY.size):,.0f}"


def paused(pauses: Sequence[int]) -> tuple[str, ...]:
    if not pauses:
        return "0", "", "", ""
    found = histogram_of(pauses)
    return (f"{len(pauses)}", *(f"{found.percentile(each) / 1e6:,.1f}" for each in (50, 99, 100)))


def verdicts(outcomes: Sequence[Outcome]) -> list[Verdict]:
    ours = [each for each in outcomes if each.contender.name.startswith(Ours.name)]
    peers = [each for each in outcomes if each not in ours and each.contender.slices]
    if not ours or ours[0].contender.failures:
        return []
    found, p50 = [], {}
    for each in ours:
        killed, stopped = (histogram_of(each.pauses[kind]) for kind in (KILLED, STOPPED))
        p50[each.contender.name] = middle = killed.percentile(50) / 1e6
        found += [
            at_most(f"{each.contender.name}, killed: p50", middle, P50_MAX_MS),
            at_most(f"{each.contender.name}, killed: p99", of(killed, 99), P99_MAX_MS),
            at_most(f"{each.contender.name}, stopped: longest", of(stopped, 100), STOPPED_MAX_MS),
        ]
    for each in ours[1:]:
        ratio = p50[each.contender.name] / p50[Ours.name]
        text = f"{each.contender.name}: {ratio:.2f} x the p50 without it (at most {BACKLOG_MAX})"
        found.append(Verdict(text, ratio, BACKLOG_MAX, ratio <= BACKLOG_MAX))
    if peers:
        best = max(peers, key=lambda each: each.contender.per_s(BODY.size)).contender
        ratio = ours[0].contender.per_s(BODY.size) / best.per_s(BODY.size)
        text = f"many outstanding: {ratio:.1f} x {best.name} (at least {RATE_MIN:g})"
        found.append(Verdict(text, ratio, RATE_MIN, ratio >= RATE_MIN))
    return found


def of(histogram: Histogram, percent: float) -> float:
    return histogram.percentile(percent) / 1e6


def at_most(what: str, figure: float, target: float) -> Verdict:
    return Verdict(f"{what} {figure:.1f} ms (at most {target:g})", figure, target, figure <= target)


def draw(outcomes: Sequence[Outcome], page: Page) -> None:
    from shmbroker.perf.scenarios import pictures
    from shmbroker.perf.scenarios.page import Drawing

    curves = {
        f"{each.contender.name}, {kind}": pictures.Curve.of(histogram_of(pauses))
        for each in outcomes for kind, pauses in each.pauses.items() if pauses
    }  # fmt: skip
    if curves:
        drawn = pictures.percentile_curves(curves, "From the blow to the next confirm", of="blows")
        page.draw(Drawing("takeover", "time by percentile of blows", drawn))
    page.text(table(outcomes))


SCENARIO = Scenario(
    "takeover",
    help="""Measure what the loss of a replicated queue's broker costs, beside other brokers.

    Exits with 1 if a confirmed message is lost.  Needs the extra `perf`.
    """,
    examples="""
    shmbroker bench takeover
    shmbroker bench takeover --peer rabbitmq --blows 5 --backlog 1GiB
    """,
    options=(
        several("--peer", "peers", type=one_of("peer", PEERS), metavar="NAME",
                help="Measure only this peer and ours."),
        option("--rounds", type=POSITIVE, default=5, show_default=True,
               help="Rounds of confirms."),
        option("--singles", type=click.IntRange(min=2), default=300, show_default=True,
               metavar="N", help="Confirms one at a time in a round."),
        option("--many", type=POSITIVE, default=20_000, show_default=True, metavar="N",
               help="Confirms with many outstanding in a round."),
        option("--blows", type=POSITIVE, default=10, show_default=True, metavar="N",
               help="How often who answers is struck, in each way."),
        option("--backlog", type=SIZE, default=0, metavar="SIZE",
               help="Measure ours once more with so much in another queue."),
        option("--seed", type=click.IntRange(min=0), default=1, metavar="N",
               help="Seed of the moments of the blows.  [1]"),
        option("--folder", type=FILE, default=".", metavar="DIR", help="Folder of the stores."),
    ),
    measure=measure,
    pinning="none: brokers have threads of their own",
    quick=("--rounds=1", "--singles=50", "--many=2000", "--blows=2", "--peer=rabbitmq"),
)  # fmt: skip
COMMAND = SCENARIO.command
main = COMMAND.main

if __name__ == "__main__":
    sys.exit(main())
