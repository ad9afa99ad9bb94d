"""Intervals that begin in the same window, as one: what Spark would do with them next.

Done while they are at hand, it saves Spark most of the work.  What is the same is owner, build,
geometry and window.  A file is mostly in the order of time, so the newest window is kept open
until the next rows have come, and each comes once.  Where the order is another one, a window
comes in parts, and Spark adds those up.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from shmbroker.perf.spark import counts
from shmbroker.perf.spark.interval import TEXTS, Intervals, grouped

OPEN_BUCKETS_MAX = 1 << 20
"""12 MiB; more are not waited for."""

TOTAL_MAX = 1 << 61
"""Of an open one: what the next rows add cannot make it overflow."""


class Windows:
    """Of one file."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.open: Intervals | None = None

    def add(self, found: Intervals) -> Intervals:
        """What is complete by now, of good intervals."""
        newest = found.numbers["start"].max() // self.size
        if self.open:
            found = joined(self.open, found)
        found = combined(found, self.size)
        is_open = found.numbers["start"] // self.size >= newest
        is_open &= found.numbers["total"] < TOTAL_MAX
        self.open = found.only(is_open)
        if len(self.open.indexes) > OPEN_BUCKETS_MAX:
            self.open = None
            return found
        return found.only(~is_open)


def joined(one: Intervals, other: Intervals) -> Intervals:
    def both(mine: np.ndarray, its: np.ndarray) -> np.ndarray:
        return np.concatenate([mine, its])

    return Intervals(
        both(one.offsets, other.offsets),
        {name: pa.concat_arrays([one.texts[name], other.texts[name]]) for name in TEXTS},
        {name: both(column, other.numbers[name]) for name, column in one.numbers.items()},
        both(one.digits, other.digits),
        both(one.ends, other.ends[1:] + one.ends[-1]),
        both(one.indexes, other.indexes),
        both(one.counts, other.counts),
    )


def combined(intervals: Intervals, window: int) -> Intervals:
    columns = [*(intervals.texts[name] for name in TEXTS), intervals.digits]
    columns += [intervals.numbers["lowest"], intervals.numbers["highest"]]
    columns.append(intervals.numbers["start"] // window)
    first, group = grouped(columns)
    if len(first) == len(intervals):
        return intervals
    numbers = {name: column[first] for name, column in intervals.numbers.items()}
    for name in ("total", "overflow"):
        numbers[name] = np.zeros(len(first), np.int64)
        np.add.at(numbers[name], group, intervals.numbers[name])
    np.minimum.at(numbers["start"], group, intervals.numbers["start"])
    np.maximum.at(numbers["end"], group, intervals.numbers["end"])
    taken = pa.array(first)
    return Intervals(
        intervals.offsets[first],
        {name: column.take(taken) for name, column in intervals.texts.items()},
        numbers,
        intervals.digits[first],
        *counts.combined(group, len(first), intervals.ends, intervals.indexes, intervals.counts),
    )
