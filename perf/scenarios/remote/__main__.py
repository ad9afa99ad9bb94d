"""python -m shmbroker.perf.scenarios.remote: brokers on the other side of TCP, beside their peers.

    memory, disk   program ══ TCP, publish and confirm ══ broker ══ take, not timed ══ program
    link           program ══ TCP ══ broker ══ link ══ broker ══ TCP ══ program

One outstanding: the time of a publish with its confirm; of a link from the publish until it is
taken at the other broker.  Many outstanding: confirmed (of a link: taken) messages a second.  In
turns, round after round, over loopback; ours has its usual encryption and passwords, the peers
have neither.  What is taken is compared with what was published.  In memory means that a message
outlives the programs; on disk, that it was synced before it was confirmed: `shmbroker bench
durable` counts syncs.  Peers are installed from Debian if we are root; who cannot be is left out,
and told.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shmbroker.ipc.latency.latency import Histogram
from shmbroker.perf.machine.debian import NotInstalled
from shmbroker.perf.machine.size import format_size
from shmbroker.perf.scenarios.command import one_of, several
from shmbroker.perf.scenarios.confirming import SIZES, options
from shmbroker.perf.scenarios.durable.contender import COUNT_MAX, Contender
from shmbroker.perf.scenarios.findings import Findings, Verdict
from shmbroker.perf.scenarios.remote.kind import KINDS, Kind, names
from shmbroker.perf.scenarios.remote.verdicts import table, verdicts
from shmbroker.perf.scenarios.scenario import Scenario
from shmbroker.perf.scenarios.steps import Steps
from shmbroker.perf.server.connection import BATCH, Connection
from shmbroker.perf.server.server import Server

if TYPE_CHECKING:
    from shmbroker.perf.scenarios.page import Page

OURS = "shmbroker"


@dataclass
class Trial:
    """One server, connected, and how many of each size it is given at once."""

    contender: Contender
    kind: Kind
    connection: Connection
    many: dict[int, int]

    def calibrate(self, size: int, seconds: float) -> None:
        """How many take about so long; a few at once are what warms it up, too."""
        many = BATCH // 4
        while True:
            measured = self.kind.measured(self.connection, size, 2, many)
            if many / measured.per_s >= seconds / 4 or many == COUNT_MAX:
                self.many[size] = min(max(int(measured.per_s * seconds), BATCH // 4), COUNT_MAX)
                return
            many = min(4 * many, COUNT_MAX)

    def round(self, size: int, singles: int) -> None:
        measured = self.kind.measured(self.connection, size, singles, self.many[size])
        self.contender.note(size, measured)


@dataclass
class Benchmark:
    steps: Steps
    folder: Path
    sizes: Sequence[int]
    rounds: int
    singles: int
    seconds: float
    left_out: dict[str, str] = field(default_factory=dict)

    def run(self, kind: Kind, servers: Sequence[Server]) -> list[Contender]:
        """All of one kind, in turns."""
        self._trials: list[Trial] = []
        self._failed: list[Contender] = []
        with ExitStack() as stack:
            for server in servers:
                self._join(kind, server, stack)
            for size in self.sizes:
                self._each("warming up", lambda t, n=size: t.calibrate(n, self.seconds))
                for number in range(self.rounds):
                    doing = f"{format_size(size)}, round {number + 1}"
                    self._each(doing, lambda t, n=size: t.round(n, self.singles))
            return [*(trial.contender for trial in self._trials), *self._failed]

    def _join(self, kind: Kind, server: Server, stack: ExitStack) -> None:
        self.steps.next(f"{kind.name}, {server.name}: starting")
        try:
            server.install()
            running = stack.enter_context(server.hosted(self.folder))
            connection = server.connect(running.place, kind.queue)
        except NotInstalled as missing:
            self.left_out[server.name] = f"{server.name} is left out: {missing}"
            self.steps.say(self.left_out[server.name])
        except Exception as failure:  # noqa: BLE001 - one that fails must not stop the others
            self._failed.append(Contender(server.name, failures=[f"starting: {failure}"]))
        else:
            stack.callback(connection.close)
            contender = Contender(server.name, server.version())
            self._trials.append(Trial(contender, kind, connection, {}))

    def _each(self, doing: str, step: Any) -> None:
        """Who fails takes part no more; nothing that it did is told."""
        for trial in list(self._trials):
            self.steps.next(f"{trial.kind.name}, {trial.contender.name}: {doing}")
            try:
                step(trial)
            except Exception as failure:  # noqa: BLE001 - one that fails must not stop the others
                self._trials.remove(trial)
                text = f"{doing}: {type(failure).__name__}: {failure}"
                self._failed.append(Contender(trial.contender.name, failures=[text]))


@dataclass(frozen=True, slots=True)
class Result:
    kind: Kind
    contenders: Sequence[Contender]

    @property
    def ours(self) -> Contender | None:
        found = (each for each in self.contenders if each.name == OURS and each.slices)
        return next(found, None)

    def verdicts(self, size: int) -> list[Verdict]:
        if self.ours is None:
            return []
        peers = [each for each in self.contenders if each is not self.ours]
        return verdicts(self.kind, self.ours, peers, size)

    def table(self, size: int) -> str:
        return table(self.kind, self.ours, self.contenders, size)

    def name(self, contender: Contender, size: int) -> str:
        return f"{self.kind.name} {contender.name}, {format_size(size)}"


def measure(
    steps: Steps, kinds: Sequence[str], peers: Sequence[str], sizes: Sequence[int], rounds: int,
    singles: int, seconds: float, folder: Path,
) -> Findings:  # fmt: skip
    sizes = sizes or SIZES
    results: list[Result] = []
    wanted = [KINDS[name] for name in kinds or KINDS]
    inside = tempfile.TemporaryDirectory(prefix="shmbroker-remote-", dir=folder.absolute())
    with inside as within:
        benchmark = Benchmark(steps, Path(within), sizes, rounds, singles, seconds)
        chosen = {
            kind.name: [each for each in kind.servers if not peers or each.name in (*peers, OURS)]
            for kind in wanted
        }
        steps.expect(sum(map(len, chosen.values())) * (1 + len(sizes) * (1 + rounds)))
        for kind in wanted:
            results.append(Result(kind, benchmark.run(kind, chosen[kind.name])))
    failures = [
        f"{result.kind.name}, {each.name}: {why}"
        for result in results
        for each in result.contenders
        for why in each.failures
    ]
    tables = [result.table(size) for result in results for size in sizes]
    return Findings(
        "\n\n".join([*tables, *benchmark.left_out.values()]),
        _cases(results),
        "confirm",
        partial(draw, results, sizes),
        _histograms(results),
        [each for result in results for size in sizes for each in result.verdicts(size)],
        failures,
        {"folder": str(folder.absolute()), "load_after": os.getloadavg()[0]},
    )


def _cases(results: Sequence[Result]) -> list[dict[str, Any]]:
    """What perf.compare reads."""
    return [
        {
            "name": f"remote {result.name(each, size)}",
            "rounds": [{"p50_ns": s.median_ns, "messages_per_s": s.per_s} for s in slices],
        }
        for result in results
        for each in result.contenders
        for size, slices in each.slices.items()
    ]


def _histograms(results: Sequence[Result]) -> dict[str, Histogram]:
    return {
        f"remote {result.name(each, size)}": each.histogram(size)
        for result in results
        for each in result.contenders
        for size in each.slices
    }


def draw(results: Sequence[Result], sizes: Sequence[int], page: Page) -> None:
    from shmbroker.perf.scenarios import pictures
    from shmbroker.perf.scenarios.page import Drawing

    for result in results:
        for size in sizes:
            there = [each for each in result.contenders if each.slices.get(size)]
            if not there:
                continue
            shown = f"{result.kind.name}, {format_size(size)}"
            page.subheading(shown)
            curves = {each.name: pictures.Curve.of(each.histogram(size)) for each in there}
            title = f"{shown}: {result.kind.title}, one outstanding"
            drawn = pictures.percentile_curves(curves, title)
            name = f"remote-{result.kind.name}-{size}"
            page.draw(Drawing(name, "latency by percentile", drawn))
            page.text(result.table(size))


SCENARIO = Scenario(
    "remote",
    help="""Measure confirms over TCP, and a link, and compare with other brokers.

    Exits with 1 if a verdict is missed and --strict is given.  Needs the extra `perf`.
    """,
    examples="""
    shmbroker bench remote
    shmbroker bench remote --kind memory --peer redis --size 64
    """,
    options=(
        several("--kind", "kinds", type=one_of("kind", KINDS), metavar="KIND",
                help=f"Measure only this: {', '.join(KINDS)}."),
        *options(names(), seconds=0.3),
    ),
    measure=measure,
    pinning="none: servers have threads of their own",
    quick=("--rounds=1", "--size=64", "--singles=50", "--seconds=100ms", "--peer=redis"),
)  # fmt: skip
COMMAND = SCENARIO.command
main = COMMAND.main

if __name__ == "__main__":
    sys.exit(main())
