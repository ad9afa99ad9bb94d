"""python -m shmbroker.perf.micro.pinned: round trips of programs pinned before connecting.

    client ──► forth ──► server        64 B, in C; SB_FOREVER in effect, default settings
       ▲                    │
       └────── back ◄───────┘

    apart       each on a processor of its own     against sb_spin(10 us)
    together    both on one processor              against sb_spin(0)
    free        neither is pinned                  against sb_spin(10 us)

A default wait decides by itself whether it spins; sb_spin decides for it.  So each baseline is what
the case should come to.  Both run in turns in the same processes, and each pair of turns gives one
ratio of their medians; the median of all ratios is told, and must be less than RATIO_MAX.
"""

from __future__ import annotations

import argparse
import os
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from shmbroker import connect, vhost
from shmbroker.perf.machine.child import child
from shmbroker.perf.machine.client import Loops
from shmbroker.perf.machine.workspace import unique_token

ROUNDS = 31
TRIPS = 4_000
SPIN_S = 10e-6
RATIO_MAX = 1.15


@dataclass(frozen=True)
class Case:
    name: str
    baseline_s: float
    """For how long the waits of the baseline spin."""
    client: int | None
    """On the so-manieth processor that we may use; None: on any."""
    server: int | None


CASES = (
    Case("apart", SPIN_S, 0, 1),
    Case("together", 0.0, 0, 0),
    Case("free", SPIN_S, None, None),
)


@dataclass(frozen=True)
class Turns:
    """What the turns of one case took, in ns: medians, and the slowest of a hundred."""

    default: list[tuple[float, float]]
    baseline: list[tuple[float, float]]

    @property
    def ratio(self) -> float:
        return median(
            ours / theirs
            for (ours, _), (theirs, _) in zip(self.default, self.baseline, strict=True)
        )

    def line(self, case: Case) -> str:
        ours, late = (median(each) for each in zip(*self.default, strict=True))
        theirs, their_late = (median(each) for each in zip(*self.baseline, strict=True))
        told = f"{case.name:9} p50 {ours:>7,.0f} ns, p99 {late:>9,.0f} ns   "
        told += f"sb_spin({case.baseline_s * 1e6:.0f} us): {theirs:>7,.0f}, {their_late:>9,.0f} ns"
        return f"{told}   p50 {self.ratio:5.2f} x"


def place(allowed: set[int], number: int | None) -> None:
    """Before connecting, as a program does that is in a hurry."""
    ours = allowed if number is None else {sorted(allowed)[number]}
    os.sched_setaffinity(0, ours)


def both(token: str, case: Case) -> tuple[Loops, Loops]:
    return Loops("request.c", token), Loops("request.c", token, case.baseline_s)


def serve(token: str, case: Case, allowed: set[int], rounds: int, trips: int) -> None:
    place(allowed, case.server)
    default, baseline = both(token, case)
    for _ in range(rounds):
        default.run("messages_serve", trips)
        baseline.run("messages_serve", trips)


def turn(loops: Loops, trips: int) -> tuple[float, float]:
    spent = array("q", bytes(8 * trips))
    loops.run("messages_ask", trips, spent)
    return median(spent), quantiles(spent, n=100)[-1]


def measure(token: str, case: Case, allowed: set[int], rounds: int, trips: int) -> Turns:
    turns = Turns([], [])
    with child(lambda: serve(token, case, allowed, rounds, trips)):
        place(allowed, case.client)
        try:
            default, baseline = both(token, case)
            for _ in range(rounds):
                turns.default.append(turn(default, trips))
                turns.baseline.append(turn(baseline, trips))
        finally:
            os.sched_setaffinity(0, allowed)
    return turns


def run(rounds: int, trips: int) -> int:
    allowed, slow = os.sched_getaffinity(0), []
    for case in CASES:
        if len(allowed) < 2 and case.client != case.server:
            sys.stdout.write(f"{case.name:9} not measured: it takes two processors\n")
            continue
        token = unique_token("pinned")
        with connect(f"shm://{token}", create=True) as broker:
            for name in ("forth", "back"):
                broker.declare_queue(name, slots=64)
        try:
            turns = measure(token, case, allowed, rounds, trips)
        finally:
            vhost.delete(token, force=True)
        sys.stdout.write(turns.line(case) + "\n")
        slow += [case.name] if turns.ratio > RATIO_MAX else []
    if slow:
        sys.stdout.write(f"MISSED  more than {RATIO_MAX} x: {', '.join(slow)}\n")
    return 1 if slow else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m shmbroker.perf.micro.pinned",
        description="Round trips of programs that are pinned before they connect.",
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    parser.add_argument("--trips", type=int, default=TRIPS, help=f"of a turn, default {TRIPS}")
    asked = parser.parse_args(arguments)
    return run(asked.rounds, asked.trips)


if __name__ == "__main__":
    sys.exit(main())
