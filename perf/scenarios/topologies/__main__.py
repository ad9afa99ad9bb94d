"""python -m shmbroker.perf.scenarios.topologies: messengers, and the machine's limits.

Who takes part is a peer (perf/peers/), ours and the raw limits too; all of them run in turns, round
after round, get the same messages, and what arrives is checked in the same way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from shmbroker.perf.harness.case import Case, Entry
from shmbroker.perf.harness.contest import Contest
from shmbroker.perf.harness.registry import registry
from shmbroker.perf.harness.report import case_json, case_table
from shmbroker.perf.harness.task import MODES, Mode
from shmbroker.perf.machine.debian import NotInstalled
from shmbroker.perf.machine.machine import machine
from shmbroker.perf.machine.size import parse_size
from shmbroker.perf.scenarios.command import DURATION, POSITIVE, SIZE, one_of, option, several
from shmbroker.perf.scenarios.findings import Findings
from shmbroker.perf.scenarios.scenario import Scenario
from shmbroker.perf.scenarios.steps import Steps
from shmbroker.perf.scenarios.topologies import TOPOLOGIES
from shmbroker.perf.server.server import Server

if TYPE_CHECKING:
    from shmbroker.perf.scenarios.page import Page

SIZES = ("64", "1KiB", "1MiB")
ROUNDS, QUICK_ROUNDS = 5, 2
TARGET_S, QUICK_TARGET_S = 0.5, 0.1
CURVES = 8
KINDS = ("shmbroker", "others", "raw limit of the machine")
DURABLE = (
    "In brackets: what a message outlives once it was sent: nothing, the programs, or on disk."
)


def contest(
    steps: Steps, topologies: Sequence[str], sizes: Sequence[int], peers: Sequence[str],
    modes: Sequence[Mode], rounds: int | None, seconds: float | None, quick: bool,
) -> Contest:  # fmt: skip
    known = registry()
    usual, target_s = (QUICK_ROUNDS, QUICK_TARGET_S) if quick else (ROUNDS, TARGET_S)
    names = peers or list(known)
    return Contest(
        topologies=[TOPOLOGIES[name] for name in topologies or TOPOLOGIES],
        sizes=sizes or [parse_size(size) for size in SIZES],
        modes=modes or MODES,
        peers=[known[name] for name in known if name in names or known[name].is_limit],
        rounds=rounds or usual,
        target_s=seconds or target_s,
        tell=steps.next,
    )


def measure(
    steps: Steps, topologies: Sequence[str], sizes: Sequence[int], peers: Sequence[str],
    modes: Sequence[Mode], rounds: int | None, seconds: float | None, against: str | None,
    quick: bool,
) -> Findings:  # fmt: skip
    held = contest(steps, topologies, sizes, peers, modes, rounds, seconds, quick)
    cases = held.cases()
    if not cases:
        raise click.UsageError("no peer supports that: see --list")
    steps.expect(sum(len(case.entries) for case in cases) * (1 + held.rounds))
    for case in cases:
        held.hold(case)
        steps.say(case_table(case, against) + "\n")
    names = (peer.distribution for peer in held.peers)
    return Findings(
        "\n\n".join(case_table(case, against) for case in cases),
        [case_json(case, against) for case in cases],
        "round-trip",
        partial(draw, cases, against),
        {
            f"{case.title} {entry.title}": histogram
            for case in cases
            for entry in case.entries
            if (histogram := entry.histogram())
        },
        failures=[failure for case in cases for failure in case.failures()],
        details={"versions": machine(filter(None, names))["versions"]},
    )


def draw(cases: Sequence[Case], against: str | None, page: Page) -> None:
    from shmbroker.perf.scenarios import pictures
    from shmbroker.perf.scenarios.page import Drawing

    for case in cases:
        page.subheading(case.title)
        trips = case.topology.measures_latency
        of = "p50_ns" if trips else "messages_per_s"
        fastest = sorted(
            (entry for entry in case.entries if entry.medians()),
            key=lambda entry: entry.medians()[of],  # sorted at once
            reverse=not trips,
        )
        if not fastest:
            continue
        shown = [f"{entry.title} [{entry.peer.durability}]" for entry in fastest]
        values = {name: each.medians()[of] for name, each in zip(shown, fastest, strict=True)}
        what, written = written_as(of)
        marks = dict(zip(shown, map(mark, fastest), strict=True))
        drawn = pictures.bars(values, marks, KINDS, what, f"{case.title}: {what}", written)
        page.draw(Drawing(case.title, f"{what} of each peer", drawn))
        page.note(DURABLE)
        if trips:
            curves = {
                entry.title: pictures.Curve.of(histogram)
                for entry in best_of_each(fastest)
                if (histogram := entry.histogram())
            }
            drawn = pictures.percentile_curves(curves, f"{case.title}: round trips one by one")
            page.draw(Drawing(f"{case.title} percentiles", "latency by percentile", drawn))
        page.text(case_table(case, against))


def mark(entry: Entry) -> str:
    ours, others, limit = KINDS
    if entry.peer.is_limit:
        return limit
    return ours if entry.peer.name.startswith("shmbroker") else others


def written_as(of: str) -> tuple[str, Callable[[float], str]]:
    from shmbroker.perf.scenarios import pictures
    from shmbroker.perf.scenarios.page import readable

    if of == "p50_ns":
        return "median round trip", readable
    return "messages a second", pictures.counted


def best_of_each(fastest: Iterable[Entry]) -> list[Entry]:
    """The first of each peer, as many as a picture can have."""
    best: dict[str, Entry] = {}
    for entry in fastest:
        best.setdefault(entry.peer.name, entry)
    return list(best.values())[:CURVES]


def _list(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        for name, peer in registry().items():
            missing = "" if peer.installed() else " (not installed)"
            click.echo(f"{name:22} durable: {peer.durability}{missing}")
        ctx.exit()


def _install(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """Who cannot be installed is left out, as whoever is not installed."""
    if wanted and not ctx.resilient_parsing:
        for name, peer in registry().items():
            if isinstance(peer, Server):
                try:
                    peer.install()
                except NotInstalled as missing:
                    click.echo(f"{name} is left out: {missing}", err=True)
        ctx.exit()


BRIEFLY = (
    *(f"--topology={name}" for name in ("ping-pong", "one-to-one")),
    *(f"--peer={name}" for name in ("shmbroker-c", "shmbroker-python", "mp-pipe", "pyzmq")),
)
NAMED = one_of("peer", registry())
AT_ONCE = {"is_flag": True, "expose_value": False, "is_eager": True}
SCENARIO = Scenario(
    "topologies",
    help="""Measure ping-pong, streams and broadcasts of all peers.

    The raw limits of the machine are always included; --list shows the peers and their durability.
    Needs the extra `perf`.
    """,
    examples="""
    shmbroker bench topologies --quick
    shmbroker bench topologies --topology one-to-one --peer shmbroker-c --json before.json
    shmbroker bench topologies --peer cloudtoid --peer pyzmq --size 1KiB --size 1MiB
    """,
    options=(
        several("--topology", "topologies", type=one_of("topology", TOPOLOGIES), metavar="NAME",
                help="A topology."),
        several("--size", "sizes", type=SIZE, metavar="SIZE", help="Size of a message."),
        several("--peer", "peers", type=NAMED, metavar="NAME", help="A peer."),
        several("--mode", "modes", type=one_of("mode", MODES), metavar="NAME",
                help="How messages are handled."),
        option("--rounds", type=POSITIVE, metavar="N", help=f"Rounds of each peer.  [{ROUNDS}]"),
        option("--seconds", type=DURATION, help="Length of a run.  [500ms]"),
        option("--against", type=NAMED, metavar="NAME", help="Also show ratios to this peer."),
        option("--quick", is_flag=True, help="Two short rounds."),
        option("--list", callback=_list, help="List the peers and exit.", **AT_ONCE),
        option("--install", callback=_install, help="Install the servers and exit.", **AT_ONCE),
    ),
    measure=measure,
    pinning="process i of a run on processor i, round and round",
    full=("--rounds=3", "--seconds=250ms"),
    quick=("--quick", "--rounds=1", "--size=64", "--mode=single", *BRIEFLY),
)  # fmt: skip
COMMAND = SCENARIO.command
main = COMMAND.main

if __name__ == "__main__":
    sys.exit(main())
