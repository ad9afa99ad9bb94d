"""python -m shmbroker.perf.scenarios.compare OLD NEW: what got slower, beyond the noise.

Both are JSON of a scenario or of all of them, best of one machine.  The rounds
of each figure are compared by the exact permutation test of Mann and Whitney, one-sided: how many
of all ways to deal the same figures into two heaps are at least as bad.  Slower is what has p at
most ALPHA / (number of figures), so that all together raise a false alarm in one comparison of a
hundred, and a median that is worse by more than TOLERANCE.  Fewer rounds than can ever be so
unlikely are no alarm, and it is said how many would do.

Exit codes: 0 nothing is slower or missing, 1 something is, 2 the files cannot be compared.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from math import comb
from pathlib import Path
from statistics import median
from typing import Any

import click

from shmbroker.perf.harness.report import aligned
from shmbroker.perf.scenarios.command import FILE, Command

ALPHA = 0.01
TOLERANCE = 0.03
METRICS = {"p50_ns": -1, "p99_ns": -1, "messages_per_s": 1}
"""What is compared, and whether more is better; the highest percentiles of a round are luck."""

Figures = dict[tuple[str, str], list[float]]


class NotComparable(click.UsageError):
    """The files have nothing in common, or are no benchmark's."""


def figures_of(document: Any) -> Figures:
    found: Figures = {}
    for name, rounds in _rounds(document):
        for metric in METRICS:
            values = [each[metric] for each in rounds if each and metric in each]
            if values:
                found[name, metric] = values
    return found


def _rounds(document: Any) -> Iterator[tuple[str, list[Mapping[str, float] | None]]]:
    try:
        for case in document["cases"]:
            if "rounds" in case:
                yield case["name"], case["rounds"]
                continue
            for entry in case["entries"]:
                words = (case["topology"], case["size_bytes"], entry["peer"], entry["mode"])
                yield " ".join(map(str, words)), entry["rounds"]
    except (KeyError, TypeError) as error:
        raise NotComparable(f"no benchmark's JSON: {error!r}") from error


@cache
def _ways(one: int, other: int, rank_sum: int) -> int:
    """How often the Mann-Whitney statistic of heaps of these sizes is this, of all dealings."""
    if rank_sum < 0:
        return 0
    if one == 0 or other == 0:
        return int(rank_sum == 0)
    return _ways(one - 1, other, rank_sum - other) + _ways(one, other - 1, rank_sum)


def p_worse(old: Sequence[float], new: Sequence[float], sign: int) -> float:
    """How likely the new ones are at least so much worse, if there is no difference.

    Ties count as half, rounded towards no difference.
    """
    wins = sum(
        1.0 if sign * before > sign * after else 0.5 if before == after else 0.0
        for before in old
        for after in new
    )
    dealings = comb(len(old) + len(new), len(old))
    most = len(old) * len(new)
    ways = sum(_ways(len(old), len(new), each) for each in range(int(wins), most + 1))
    return ways / dealings


@dataclass(frozen=True)
class Verdict:
    name: str
    metric: str
    old: float
    new: float
    p: float
    bound: float
    enough: bool

    @property
    def ratio(self) -> float:
        """Above 1 is worse."""
        return self.old / self.new if METRICS[self.metric] > 0 else self.new / self.old

    @property
    def rounds(self) -> int:
        """Of each, so that a difference can be told from luck."""
        return next(each for each in count(1) if 1 / comb(2 * each, each) <= self.bound)

    @property
    def is_slower(self) -> bool:
        return self.enough and self.p <= self.bound and self.ratio > 1 + TOLERANCE

    def row(self) -> tuple[str, ...]:
        told = "SLOWER" if self.is_slower else "" if self.enough else f"{self.rounds} rounds do"
        values = (f"{self.old:,.0f}", f"{self.new:,.0f}", f"{self.ratio:.3f}", f"{self.p:.4f}")
        return (self.name, self.metric, told, *values)


def compare(old: Figures, new: Figures) -> list[Verdict]:
    common = [key for key in new if key in old]
    if not common:
        raise NotComparable("no case is in both files")
    bound = ALPHA / len(common)
    return [
        Verdict(
            *key,
            median(old[key]),
            median(new[key]),
            p_worse(old[key], new[key], METRICS[key[1]]),
            bound,
            1 / comb(len(old[key]) + len(new[key]), len(new[key])) <= bound,
        )
        for key in common
    ]


def tell(old: Figures, new: Figures) -> int:
    """The table, to stdout; how many figures are slower."""
    verdicts = compare(old, new)
    header = ("case", "figure", "", "old", "new", "worse by", "p")
    sys.stdout.write("\n".join(aligned([header, *(each.row() for each in verdicts)])) + "\n")
    slower = sum(1 for each in verdicts if each.is_slower)
    sys.stdout.write(
        f"{slower} of {len(verdicts)} figures are slower (exact Mann-Whitney test, p at most "
        f"{ALPHA} / {len(verdicts)}, and by more than {TOLERANCE:.0%})\n"
    )
    return slower


def read(path: Path) -> Figures:
    try:
        return figures_of(json.loads(path.read_text()))
    except (OSError, ValueError, NotComparable) as error:
        raise NotComparable(f"{path}: {error}") from error


def missing(old: Figures, new: Figures) -> list[str]:
    """Cases with a figure that is not there any more: each round has failed, or all of it has."""
    return sorted({name for name, _ in old.keys() - new.keys()})


def run(old: Path, new: Path) -> int:
    before, after = read(old), read(new)
    slower, gone = tell(before, after), missing(before, after)
    if gone:
        sys.stdout.write(f"missing in {new}, or failed there: {', '.join(gone)}\n")
    return 1 if slower or gone else 0


COMMAND = Command(
    "compare",
    help="""Compare two runs and report what is slower beyond the noise.

    Exits with 1 if something is slower by more than 3 %, by the exact test of Mann and Whitney over
    the rounds, with one false alarm in a hundred comparisons; or if a case is missing in the second
    one, or has failed there.
    """,
    examples="shmbroker bench compare before.json after.json",
    parameters=(click.Argument(["old"], type=FILE), click.Argument(["new"], type=FILE)),
    run=run,
)
main = COMMAND.main

if __name__ == "__main__":
    sys.exit(main())
