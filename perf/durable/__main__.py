"""python -m shmbroker.perf.durable: what a confirm from the disk costs, ours and the peers'.

    program ──► publish, wait for the confirm ──► ...          one outstanding: median, p99
    program ──► publish, publish, ... ──► all are confirmed    many outstanding: messages a second
    program ◄── take, acknowledge ◄── just what was sent, in its order; not timed

In turns, round after round, in one folder, so on one disk: a bare file that is overwritten, our
durable queue, and each peer with whatever makes it sync before it confirms. Then strace counts how
often each really does: who gives more confirms one after the other than it syncs is told apart,
and compared with nobody. Peers are installed from Debian if we are root; who cannot be is left out.

Exit codes: 0 all verdicts are met, 1 one is missed or something failed, 2 usage, 130 interrupted.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from shmbroker.perf.bare_file import SEGMENT_BYTES, BareFile
from shmbroker.perf.connection import Connection
from shmbroker.perf.debian import NotInstalled
from shmbroker.perf.durable.contender import (
    Contender,
    Promise,
    Slice,
    calibrated,
    consume,
    made,
    measure,
    waited_ns,
    wear,
)
from shmbroker.perf.durable.table import table
from shmbroker.perf.durable.verdicts import Verdict, verdicts
from shmbroker.perf.machine import machine
from shmbroker.perf.roster import roster
from shmbroker.perf.server import Running, Server
from shmbroker.perf.size import format_size, parse_size
from shmbroker.perf.syncs import syncs_during

OURS = "shmbroker-durable"
BARE = "bare disk"
SIZES = (64, 1024)
WARM_ROUNDS = 2
WORN_BYTES = 6 * SEGMENT_BYTES
"""By then no segment has to be made any more: they are used again."""
SINGLES = 300
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
        return measure(self._connection, size, singles, self._many[size])

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
    def __init__(self, asked: argparse.Namespace, bare: BareFile) -> None:
        self._asked = asked
        self._file = bare
        self.bare = Contender(BARE)
        self.trials: list[Trial] = []
        self.failed: list[Contender] = []

    @property
    def contenders(self) -> list[Contender]:
        return [*(trial.contender for trial in self.trials), *self.failed]

    def join(self, server: Server, folder: Path, stack: ExitStack) -> None:
        _say(f"{server.name}: starting")
        try:
            server.install()
            trial = Trial(server, stack.enter_context(server.hosted(folder)))
        except NotInstalled as missing:
            _say(f"{server.name} is left out: {missing}")
        except Exception as failure:  # noqa: BLE001 - one that fails must not stop the others
            self.failed.append(Contender(server.name, failures=[f"starting: {failure}"]))
        else:
            stack.callback(trial.close)
            self.trials.append(trial)

    def run(self) -> None:
        self._each("writing its files over", Trial.wear)
        for size in self._asked.size:
            self._each("calibrating", lambda t, n=size: t.calibrate(n, self._asked.seconds))
            for number in range(WARM_ROUNDS):
                self._each(f"warming up {number + 1}", lambda t, n=size: self._round(t, n))
            for number in range(self._asked.rounds):
                self._note_bare(size)
                self._each(f"{size} B, round {number + 1}", lambda t, n=size: self._note(t, n))
        self._each(
            "counting syncs", lambda t: t.count_syncs(self._asked.size[0], self._asked.singles)
        )

    def _round(self, trial: Trial, size: int) -> Slice:
        return trial.round(size, self._asked.singles)

    def _note(self, trial: Trial, size: int) -> None:
        trial.contender.note(size, self._round(trial, size))

    def _note_bare(self, size: int) -> None:
        waits = tuple(waited_ns(self._file.write, made(self._asked.singles, size)))
        self.bare.note(size, Slice(waits, self._file.stream(self._asked.seconds)))

    def _each(self, doing: str, step: Any) -> None:
        """Who fails takes part no more; nothing that it did is told."""
        for trial in list(self.trials):
            _say(f"{trial.contender.name}: {doing}")
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
        return [
            each for size in self._asked.size for each in verdicts(self.bare, ours, peers, size)
        ]


def main(arguments: Sequence[str] | None = None) -> int:
    signal.signal(signal.SIGTERM, _terminated)
    asked = _parser().parse_args(arguments)
    asked.size = asked.size or list(SIZES)
    servers = [peer for peer in roster().values() if isinstance(peer, Server)]
    servers = [each for each in servers if each.name in (asked.peer or [each.name]) + [OURS]]
    servers.sort(key=lambda server: server.name != OURS)
    described = machine(each.distribution for each in servers if each.distribution)
    try:
        with ExitStack() as stack:
            stack.enter_context(
                folder := tempfile.TemporaryDirectory(prefix="shmbroker-durable-", dir=asked.folder)
            )
            bare = BareFile(Path(folder.name) / "bare")
            stack.callback(bare.close)
            benchmark = Benchmark(asked, bare)
            for server in servers:
                benchmark.join(server, Path(folder.name), stack)
            benchmark.run()
    except KeyboardInterrupt:
        return 130
    return _tell(benchmark, asked, described)


def _tell(benchmark: Benchmark, asked: argparse.Namespace, described: dict[str, object]) -> int:
    before, after = described["load_average"][0], os.getloadavg()[0]  # type: ignore[index]
    given = benchmark.verdicts()
    failures = [f"FAILED {c.name}: {why}" for c in benchmark.contenders for why in c.failures]
    out = [
        f"{described['cpu']}, {len(os.sched_getaffinity(0))} cores, Linux {described['kernel']}; "
        f"{asked.rounds} rounds in {asked.folder}; "
        f"load {before:.1f} before, {after:.1f} after"
    ]
    out += [table(benchmark.bare, benchmark.contenders, size) for size in asked.size]
    out += ["\n".join([*map(str, given), *failures])]
    sys.stdout.write("\n\n".join(out) + "\n")
    if asked.json:
        document = {
            "machine": described | {"load_after": after},
            "rounds": asked.rounds,
            "contenders": [_json(each) for each in (benchmark.bare, *benchmark.contenders)],
            "cases": _cases(benchmark),
            "verdicts": [
                {"text": v.text, "figure": v.figure, "target": v.target, "met": v.is_met}
                for v in given
            ],
        }
        asked.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0 if given and all(v.is_met for v in given) and not failures else 1


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m shmbroker.perf.durable",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__.partition("\n")[2],
    )
    names = [name for name, peer in roster().items() if isinstance(peer, Server)]
    parser.add_argument("--peer", choices=names, action="append", help="only these, and ours")
    parser.add_argument("--size", type=parse_size, action="append", help="64 and 1KiB")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="default 5")
    parser.add_argument(
        "--singles", type=int, default=SINGLES, metavar="N", help=f"confirms a round ({SINGLES})"
    )
    parser.add_argument("--seconds", type=float, default=0.5, help="of a stream (0.5)")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure")
    return parser


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    """SIGTERM ends like Ctrl-C: each server is ended on the way."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
