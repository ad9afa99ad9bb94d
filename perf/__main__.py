"""The command ``python -m shmbroker.perf``: the table to stdout, progress to stderr.

Exit codes: 0 ok, 1 something failed (see the table), 2 usage, 130 interrupted.
"""

import argparse
import difflib
import json
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

from shmbroker.perf.contest import Contest
from shmbroker.perf.debian import NotInstalled
from shmbroker.perf.machine import machine
from shmbroker.perf.peer import Peer
from shmbroker.perf.report import as_json, case_table, table
from shmbroker.perf.roster import roster
from shmbroker.perf.server import Server
from shmbroker.perf.size import parse_size
from shmbroker.perf.task import MODES, Mode
from shmbroker.perf.topologies import TOPOLOGIES

Value = TypeVar("Value")

EXAMPLES = """examples:
  python -m shmbroker.perf --quick                        everything, briefly
  python -m shmbroker.perf --topology ping-pong --size 64
  python -m shmbroker.perf --peer cloudtoid --peer pyzmq --size 1KiB --size 1MiB
  python -m shmbroker.perf --against pyzmq --json figures.json
  python -m shmbroker.perf --list                         the names of the peers
  python -m shmbroker.perf --install                      the Debian packages of Redis and others
"""
SIZES = ("64", "1KiB", "1MiB")
ROUNDS, QUICK_ROUNDS = 5, 2
TARGET_S, QUICK_TARGET_S = 0.5, 0.1


def main(arguments: Sequence[str] | None = None) -> int:
    signal.signal(signal.SIGTERM, _terminated)
    known = roster()
    parser = _parser(known)
    asked = parser.parse_args(arguments)
    if asked.list:
        for name, peer in known.items():
            print(name if peer.installed() else f"{name} (not installed)")
        return 0
    if asked.install:
        return _install(known)
    contest = _contest(asked, known)
    cases = contest.cases()
    if not cases:
        parser.error("no peer supports that: see --list")
    described = machine(c.distribution for c in contest.peers if c.distribution)
    try:
        for case in cases:
            contest.hold(case)
            _say(case_table(case, asked.against) + "\n")
    except KeyboardInterrupt:
        return 130
    print(table(cases, described, asked.against))
    if asked.json:
        document = as_json(cases, described, asked.against, vars(asked) | {"json": str(asked.json)})
        asked.json.write_text(json.dumps(document, indent=1) + "\n")
    return 1 if any(entry.failures for case in cases for entry in case.entries) else 0


def _install(known: dict[str, Peer]) -> int:
    """Who cannot be installed is left out, as whoever is not installed."""
    for name, peer in known.items():
        if isinstance(peer, Server):
            try:
                peer.install()
            except NotInstalled as missing:
                _say(f"{name} is left out: {missing}")
    return 0


def _contest(asked: argparse.Namespace, known: dict[str, Peer]) -> Contest:
    rounds, target_s = (QUICK_ROUNDS, QUICK_TARGET_S) if asked.quick else (ROUNDS, TARGET_S)
    names = asked.peer or list(known)
    modes: Sequence[Mode] = asked.mode or MODES
    return Contest(
        topologies=[TOPOLOGIES[name] for name in asked.topology or TOPOLOGIES],
        sizes=asked.size or [parse_size(size) for size in SIZES],
        modes=modes,
        peers=[known[name] for name in known if name in names or known[name].is_limit],
        rounds=asked.rounds or rounds,
        target_s=target_s,
        tell=_say,
    )


def _parser(known: dict[str, Peer]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m shmbroker.perf",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=f"%(prog)s [options]\n\n{EXAMPLES}",
        description="Runs messengers against each other and against the machine's raw limits.\n"
        "The raw limits always take part where they apply.",
    )
    repeated: dict[str, Any] = {"action": "append", "metavar": "NAME"}
    named = _named("peer", known)
    parser.add_argument("--topology", type=_named("topology", TOPOLOGIES), **repeated)
    parser.add_argument("--size", type=_typed(parse_size), action="append", metavar="SIZE")
    parser.add_argument("--peer", type=named, **repeated)
    parser.add_argument("--mode", type=_named("mode", MODES), **repeated)
    parser.add_argument("--rounds", type=_typed(_positive), metavar="N", help=f"default {ROUNDS}")
    parser.add_argument("--against", type=named, metavar="NAME", help="show ratios to this one too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure")
    parser.add_argument("--quick", action="store_true", help="two short rounds")
    parser.add_argument("--install", action="store_true", help="install the servers, and end")
    parser.add_argument("--list", action="store_true", help="list the peers and end")
    return parser


def _named(what: str, names: Iterable[str]) -> Callable[[str], str]:
    """Checks a name; a wrong one is answered with the nearest right one."""
    right = list(names)

    def check(name: str) -> str:
        if name in right:
            return name
        near = difflib.get_close_matches(name, right, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(right)}"
        raise argparse.ArgumentTypeError(f"no {what} {name!r}: {hint}")

    return check


def _typed(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    def convert(text: str) -> Value:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError("must be at least 1")
    return number


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    """SIGTERM ends like Ctrl-C: every process and segment of the run is removed on the way."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
