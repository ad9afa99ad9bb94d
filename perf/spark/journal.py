"""What there is to say of one file, and the checks that an interval must pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from shmbroker.perf.spark import counts
from shmbroker.perf.spark.interval import (
    FILE,
    MESSAGES_MAX,
    PROBLEM,
    PROBLEMS_MAX,
    SEVERAL,
    SLACK_NS,
    TEXTS,
    Intervals,
    codes_of,
    rows,
)
from shmbroker.perf.spark.window import Windows


@dataclass
class Journal:
    """What there is to say of one file, and what has to be remembered of it."""

    file: str
    window: int = 0
    """Nanoseconds: intervals that begin in the same are combined; 0 leaves each as it is."""
    intervals: int = 0
    messages: int = 0
    overflow: int = 0
    first: int | None = None
    last: int | None = None
    host: str | None = None
    vhost: str | None = None
    problems: list[tuple[int, str, int]] = field(default_factory=list)
    untold: int = 0
    untold_messages: int = 0
    before: dict[Any, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.windows = Windows(self.window) if self.window else None

    def meet(self, hosts: pa.Array, vhosts: pa.Array) -> None:
        """Whose file it is, as long as it is one's."""
        for name, column in (("host", hosts), ("vhost", vhosts)):
            met = column.drop_null().unique()
            if len(met) and getattr(self, name) is None:
                setattr(self, name, met[0].as_py())
            if any(owner.as_py() != getattr(self, name) for owner in met):
                setattr(self, name, SEVERAL)

    def problem(self, offset: int, what: str, left_out: int = 0) -> None:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append((offset, what, left_out))
        else:
            self.untold += 1
            self.untold_messages += left_out

    def end(self) -> Iterator[pa.RecordBatch]:
        """The rows that come last."""
        if self.windows and self.windows.open:
            yield self.windows.open.rows(self.file)
        told = list(self.problems)
        if self.untold:
            told.append(
                (told[-1][0], f"{self.untold} more problems after it", self.untold_messages)
            )
        if told:
            offsets, texts, totals = zip(*told, strict=True)
            yield rows(
                PROBLEM, self.file, len(told), offset=offsets, problem=texts, total=totals,
                host=[self.host] * len(told), vhost=[self.vhost] * len(told),
            )  # fmt: skip
        yield rows(
            FILE, self.file, 1, offset=[self.intervals], start=[self.first], end=[self.last],
            total=[self.messages], overflow=[self.overflow], host=[self.host], vhost=[self.vhost],
        )  # fmt: skip

    def take(self, intervals: Intervals) -> Iterator[pa.RecordBatch]:
        """The good ones as rows; of the others is told what is wrong."""
        if not len(intervals):
            return
        good = self._good(intervals)
        if not good.any():
            return
        start, end = intervals.numbers["start"], intervals.numbers["end"]
        self._check_order(intervals, np.flatnonzero(good))
        self.intervals += int(good.sum())
        self.messages += int(intervals.numbers["total"][good].sum())
        self.overflow += int(intervals.numbers["overflow"][good].sum())
        first, last = int(start[good].min()), int(end[good].max())
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)
        if not good.all():
            intervals = intervals.only(good)
        complete = self.windows.add(intervals) if self.windows else intervals
        if len(complete):
            yield complete.rows(self.file)

    def _good(self, intervals: Intervals) -> np.ndarray:
        good = np.ones(len(intervals), bool)
        for fails, what in faults(intervals):
            for row in np.flatnonzero(fails & good):
                claimed = int(intervals.numbers["total"][row])
                left_out = claimed if 0 <= claimed <= MESSAGES_MAX else 0
                text = what(row) if callable(what) else what
                self.problem(int(intervals.offsets[row]), text, left_out)
            good &= ~fails
        return good

    def _check_order(self, intervals: Intervals, good: np.ndarray) -> None:
        """Tell of clocks that went back and of overlaps; what was counted stays counted."""
        owners = [intervals.texts[name] for name in TEXTS[:4]]
        codes = codes_of([column.take(pa.array(good)) for column in owners])
        order = np.argsort(codes, kind="stable")
        good, codes = good[order], codes[order]
        starts, ends = intervals.numbers["start"][good], intervals.numbers["end"][good]
        is_first = np.concatenate([[True], codes[1:] != codes[:-1]])
        previous_start = np.concatenate([[0], starts[:-1]])
        previous_end = np.concatenate([[0], ends[:-1]])
        is_last = np.concatenate([is_first[1:], [True]])
        at_first, at_last = np.flatnonzero(is_first), np.flatnonzero(is_last)
        for first, last in zip(at_first, at_last, strict=True):
            owner = tuple(column[int(good[first])].as_py() for column in owners)
            known = self.before.get(owner, (-1 << 62, -1 << 62))
            previous_start[first], previous_end[first] = known
            self.before[owner] = int(starts[last]), int(ends[last])
        for row in np.flatnonzero(starts < previous_end - SLACK_NS):
            back = (int(previous_start[row]) - int(starts[row])) / 1e9
            over = (int(previous_end[row]) - int(starts[row])) / 1e9
            queue = intervals.texts["queue"][int(good[row])].as_py()
            if back > 0:
                what = (
                    f"of {queue} begins {back:,.3f} s before the one before it: a clock went back"
                )
            else:
                what = f"of {queue} overlaps the one before it by {over:,.3f} s"
            self.problem(int(intervals.offsets[good[row]]), f"this interval {what}; it is counted")
        for row in np.flatnonzero(ends < starts):
            what = "the clock went back during this interval; it is counted where it begins"
            self.problem(int(intervals.offsets[good[row]]), what)


def faults(intervals: Intervals) -> Iterator[tuple[np.ndarray, Any]]:
    """Which rows are not to be believed, and why; the later ones rest on the earlier."""
    numbers = intervals.numbers
    for name in TEXTS[:4]:
        yield np.asarray(intervals.texts[name].is_null()), f"it has no {name}"
    yield numbers["start"] < 0, "it begins before 1970"
    known, which = intervals.geometries
    reasons = [geometry.fault for geometry in known]
    bad = np.array([reason is not None for reason in reasons])[which]
    yield bad, lambda row: f"a geometry that cannot be: {reasons[which[row]]}"
    sums, flags = intervals.checked
    yield (
        flags & counts.OUTSIDE > 0,
        (lambda row: f"a bucket outside of its geometry, which has {intervals.lengths[row]:,}"),
    )
    yield flags & counts.FALLING > 0, "its buckets do not ascend"
    yield flags & counts.UNLIKELY > 0, "a count that overflows, or is not positive"
    yield (sums > MESSAGES_MAX) | (sums < 0), "its counts overflow"
    yield (
        (numbers["overflow"] < 0) | (numbers["overflow"] > MESSAGES_MAX),
        ("a number of values above the highest that cannot be"),
    )
    yield (
        sums != numbers["total"],
        (lambda row: f"its counts make {sums[row]:,}, its total says {numbers['total'][row]:,}"),
    )
