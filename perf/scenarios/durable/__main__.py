"""python -m shmbroker.perf.scenarios.durable: what a confirm from the disk costs.

    program ──► publish, wait for the confirm ──► ...          one outstanding: median, p99
    program ──► publish, publish, ... ──► all are confirmed    many outstanding: messages a second
    program ◄── take, acknowledge ◄── just what was sent, in its order; not timed

In turns, round after round, in one folder, so on one disk: a bare file that is overwritten, our
durable queue, and each peer with whatever makes it sync before it confirms. Then strace counts how
often each really does: who gives more confirms one after the other than it syncs is told apart,
and compared with nobody. Peers are installed from Debian if we are root; who cannot be is left out.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shmbroker.ipc.latency.latency import Histogram
from shmbroker.perf.harness.registry import registry
from shmbroker.perf.machine.bare_file import SEGMENT_BYTES, BareFile
from shmbroker.perf.machine.debian import NotInstalled
from shmbroker.perf.machine.size import format_size
from shmbroker.perf.machine.syncs import syncs_during
from shmbroker.perf.scenarios.confirming import SIZES, options
from shmbroker.perf.scenarios.durable.contender import (
    Contender,
    Promise,
    Slice,
    calibrated,
    consume,
    made,
    sliced,
    waited_ns,
    wear,
)
from shmbroker.perf.scenarios.durable.table import PROMISES, promise, table
from shmbroker.perf.scenarios.durable.verdicts import verdicts
from shmbroker.perf.scenarios.findings import Findings, Verdict
from shmbroker.perf.scenarios.scenario import Scenario
from shmbroker.perf.scenarios.steps import Steps
from shmbroker.perf.server.connection import Connection
from shmbroker.perf.server.server import Running, Server

if TYPE_CHECKING:
    from shmbroker.perf.scenarios.page import Page

OURS = "shmbroker-durable"
BARE = "bare disk"
WARM_ROUNDS = 2
WORN_BYTES = 6 * SEGMENT_BYTES
"""By then no segment has to be made any more: they are used again."""
QUEUE = "durable"


class Trial:
    """One server, connected, and how much of each size it is given."""

    def __init__(self, server: Server, running: Running) -> None:
        self.contender = Contender(server.name, server.version())
        self._pid = running.pid
        self._connection: Connection = server.connect(running.place, QUEUE)
        self._many: dict[int, int] = {}

    def wear(self) -> None:
        """Our journal's files are all written over before they are measured: the bare file is."""
        if self.contender.name == OURS:
            wear(self._connection, WORN_BYTES)

    def calibrate(self, size: int, seconds: float) -> None:
        self._many[size] = calibrated(self._connection, size, seconds)

    def round(self, size: int, singles: int) -> Slice:
        return sliced(self._connection, size, singles, self._many[size])

    def count_syncs(self, size: int, singles: int) -> None:
        singly, together = made(singles, size), made(self._many[size], size)

        def one_by_one() -> None:
            for body in singly:
                self._connection.publish(body)

        def at_once() -> None:
            self._connection.publish_many(together)

        self.contender.singly = Promise(len(singly), syncs_during(self._pid, one_by_one))
        self.contender.in_batches = Promise(len(together), syncs_during(self._pid, at_once))
        consume(self._connection, singly + together)

    def close(self) -> None:
        self._connection.close()


class Benchmark:
    """All in turns. So many rounds, of so many confirms one by one and so many seconds of many."""

    def __init__(
        self, bare: BareFile, steps: Steps, sizes: Sequence[int], rounds: int, singles: int,
        seconds: float,
    ) -> None:  # fmt: skip
        self._file = bare
        self._steps = steps
        self.sizes, self._rounds = sizes, rounds
        self._singles, self._seconds = singles, seconds
        self.bare = Contender(BARE)
        self.trials: list[Trial] = []
        self.failed: list[Contender] = []

    @property
    def contenders(self) -> list[Contender]:
        return [*(trial.contender for trial in self.trials), *self.failed]

    def join(self, server: Server, folder: Path, stack: ExitStack) -> None:
        self._steps.next(f"{server.name}: starting")
        try:
            server.install()
            trial = Trial(server, stack.enter_context(server.hosted(folder)))
        except NotInstalled as missing:
            self._steps.say(f"{server.name} is left out: {missing}")
        except Exception as failure:  # noqa: BLE001 - one that fails must not stop the others
            self.failed.append(Contender(server.name, failures=[f"starting: {failure}"]))
        else:
            stack.callback(trial.close)
            self.trials.append(trial)

    def run(self) -> None:
        warm = min(WARM_ROUNDS, self._rounds)
        each = len(self.sizes) * (1 + warm + self._rounds) + 2
        self._steps.expect(len(self.trials) * each)
        self._each("writing its files over", Trial.wear)
        for size in self.sizes:
            self._each("calibrating", lambda t, n=size: t.calibrate(n, self._seconds))
            for number in range(warm):
                self._each(f"warming up {number + 1}", lambda t, n=size: self._round(t, n))
            for number in range(self._rounds):
                self._note_bare(size)
                self._each(f"{size} B, round {number + 1}", lambda t, n=size: self._note(t, n))
        self._each("counting syncs", lambda t: t.count_syncs(self.sizes[0], self._singles))

    def _round(self, trial: Trial, size: int) -> Slice:
        return trial.round(size, self._singles)

    def _note(self, trial: Trial, size: int) -> None:
        trial.contender.note(size, self._round(trial, size))

    def _note_bare(self, size: int) -> None:
        waits = tuple(waited_ns(self._file.write, made(self._singles, size)))
        self.bare.note(size, Slice(waits, self._file.stream(self._seconds)))

    def _each(self, doing: str, step: Any) -> None:
        """Who fails takes part no more; nothing that it did is told."""
        for trial in list(self.trials):
            self._steps.next(f"{trial.contender.name}: {doing}")
            try:
                step(trial)
            except Exception as failure:  # noqa: BLE001 - one that fails must not stop the others
                self.trials.remove(trial)
                text = f"{doing}: {type(failure).__name__}: {failure}"
                self.failed.append(Contender(trial.contender.name, failures=[text]))

    def verdicts(self) -> list[Verdict]:
        by_name = {trial.contender.name: trial.contender for trial in self.trials}
        ours = by_name.pop(OURS, None)
        if ours is None:
            return []
        peers = list(by_name.values())
        return [each for size in self.sizes for each in verdicts(self.bare, ours, peers, size)]


def measure(
    steps: Steps, peers: Sequence[str], sizes: Sequence[int], rounds: int, singles: int,
    seconds: float, folder: Path,
) -> Findings:  # fmt: skip
    sizes = sizes or SIZES
    servers = [peer for peer in registry().values() if isinstance(peer, Server)]
    servers = [each for each in servers if not peers or each.name in (*peers, OURS)]
    servers.sort(key=lambda server: server.name != OURS)
    with ExitStack() as stack:
        inside = tempfile.TemporaryDirectory(prefix="shmbroker-durable-", dir=folder.absolute())
        within = Path(stack.enter_context(inside))
        bare = BareFile(within / "bare")
        stack.callback(bare.close)
        benchmark = Benchmark(bare, steps, sizes, rounds, singles, seconds)
        steps.expect(len(servers))
        for server in servers:
            benchmark.join(server, within, stack)
        benchmark.run()
    given = benchmark.verdicts()
    failures = [f"{c.name}: {why}" for c in benchmark.contenders for why in c.failures]
    tables = [table(benchmark.bare, benchmark.contenders, size) for size in sizes]
    if not given:
        failures.append(f"{OURS} did not take part")
    return Findings(
        "\n\n".join(tables),
        _cases(benchmark),
        "confirm",
        partial(draw, benchmark, tables),
        _histograms(benchmark),
        given,
        failures,
        {
            "folder": str(folder.absolute()),
            "load_after": os.getloadavg()[0],
            "contenders": [_json(each) for each in (benchmark.bare, *benchmark.contenders)],
        },
    )


def _histograms(benchmark: Benchmark) -> dict[str, Histogram]:
    return {
        f"durable {each.name}, {format_size(size)}": each.histogram(size)
        for each in (benchmark.bare, *benchmark.contenders)
        for size in each.slices
    }


def draw(benchmark: Benchmark, tables: Sequence[str], page: Page) -> None:
    from shmbroker.perf.scenarios import pictures
    from shmbroker.perf.scenarios.page import Drawing

    for size, told in zip(benchmark.sizes, tables, strict=True):
        there = [each for each in benchmark.contenders if each.slices.get(size)]
        shown = format_size(size)
        page.subheading(shown)
        curves = {
            each.name + ("" if each.syncs or each is benchmark.bare else ": DOES NOT SYNC"):
                pictures.Curve.of(each.histogram(size))
            for each in (benchmark.bare, *there)
        }  # fmt: skip
        title = f"{shown}: from publish to the confirm, one outstanding"
        drawn = pictures.percentile_curves(curves, title)
        page.draw(Drawing(f"confirm-{size}", "latency of a confirm by percentile", drawn))
        there.sort(key=lambda each: -each.per_s(size))
        rates = {each.name: each.per_s(size) for each in there}
        if rates:
            marks = {each.name: promise(each) for each in there}
            title = f"{shown}: confirmed messages a second, many outstanding"
            what = "messages a second"
            drawn = pictures.bars(rates, marks, PROMISES, what, title, pictures.counted)
            page.draw(Drawing(f"many-{size}", title, drawn))
        page.text(told)


def _cases(benchmark: Benchmark) -> list[dict[str, Any]]:
    """What perf.compare reads."""
    return [
        {
            "name": f"{each.name}, {format_size(size)}",
            "rounds": [{"p50_ns": s.median_ns, "messages_per_s": s.per_s} for s in slices],
        }
        for each in benchmark.contenders
        for size, slices in each.slices.items()
    ]


def _json(contender: Contender) -> dict[str, Any]:
    rate = "bytes_per_s" if contender.name == BARE else "messages_per_s"
    counted = {"singly": contender.singly, "in_batches": contender.in_batches}
    return {
        "name": contender.name,
        "version": contender.version,
        "syncs_before_it_confirms": contender.syncs if contender.singly else None,
        "counted": {
            how: {"confirms": promise.confirms, "syncs": promise.syncs}
            for how, promise in counted.items()
            if promise
        },
        "sizes": {
            size: {
                "median_ns": contender.wait_ns(size, 50),
                "p99_ns": contender.wait_ns(size, 99),
                rate: contender.per_s(size),
            }
            for size in contender.slices
        },
        "failures": contender.failures,
    }


SERVERS = [name for name, peer in registry().items() if isinstance(peer, Server)]
SCENARIO = Scenario(
    "durable",
    help="""Measure confirms from the disk, and compare with peers that sync.

    Exits with 1 if a verdict is missed and --strict is given.  Needs the extra `perf`.
    """,
    examples="""
    shmbroker bench durable --folder /var/lib
    shmbroker bench durable --peer redis --size 64 --json before.json
    """,
    options=options(SERVERS, seconds=0.5),
    measure=measure,
    pinning="none: servers have threads of their own",
    quick=("--rounds=1", "--size=64", "--singles=50", "--seconds=100ms", "--peer=redis"),
)  # fmt: skip
COMMAND = SCENARIO.command
main = COMMAND.main

if __name__ == "__main__":
    sys.exit(main())
