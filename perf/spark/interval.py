"""What a spool is read as: rows of three sorts, and the checks that an interval must pass.

    interval   one histogram: whose, of which queue and kind, from when to when, its geometry, and
               which buckets have how many.  All that are read have passed the checks
    problem    something that is wrong, where (`file`, `offset`) and what (`problem`); `total` is
               how many messages are left out because of it, 0 if they are counted all the same
               or nobody knows
    file       one for each file that was read, after its others: how many intervals (`offset`),
               from when to when, how many messages (`total`, `overflow`)

`offset` is a byte in a .hlog, and a row in a Parquet file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from shmbroker.perf.spark.geometry import Geometry

INTERVAL, PROBLEM, FILE = "interval", "problem", "file"

MESSAGES_MAX = 1 << 40
"""In one interval: more are taken for damage.  So sums stay below 2^63 for 8 million of those."""

PROBLEMS_MAX = 100
"""Of one file are told one by one; the others are counted."""

SEVERAL = "*"
"""Who wrote a file, if more than one did."""

SLACK_NS = 1_000_000
"""Times in a .hlog are rounded: an overlap of less is none."""

TEXTS = ("host", "vhost", "queue", "kind", "build")
NUMBERS = ("start", "end", "lowest", "highest", "total", "overflow")

SCHEMA = pa.schema(
    [
        ("sort", pa.string()),
        ("file", pa.string()),
        ("offset", pa.int64()),
        ("problem", pa.string()),
        ("host", pa.string()),
        ("vhost", pa.string()),
        ("queue", pa.string()),
        ("kind", pa.string()),
        ("build", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("lowest", pa.int64()),
        ("highest", pa.int64()),
        ("digits", pa.int32()),
        ("total", pa.int64()),
        ("overflow", pa.int64()),
        ("indexes", pa.list_(pa.int32())),
        ("counts", pa.list_(pa.int64())),
    ]
)
DDL = (
    "sort STRING, file STRING, offset BIGINT, problem STRING, host STRING, vhost STRING, "
    "queue STRING, kind STRING, build STRING, start BIGINT, end BIGINT, lowest BIGINT, "
    "highest BIGINT, digits INT, total BIGINT, overflow BIGINT, indexes ARRAY<INT>, "
    "counts ARRAY<BIGINT>"
)


@dataclass
class Intervals:
    """Some of one file, as columns; the buckets of row i are at ends[i]:ends[i + 1]."""

    offsets: np.ndarray
    texts: dict[str, pa.Array]
    numbers: dict[str, np.ndarray]
    digits: np.ndarray
    ends: np.ndarray
    indexes: np.ndarray
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets)

    @cached_property
    def sums(self) -> np.ndarray:
        return per_row(self.counts, self.ends)

    def only(self, wanted: np.ndarray) -> Intervals:
        """Some rows of these, as a mask has them."""
        sizes = np.diff(self.ends)
        of_wanted = np.repeat(wanted, sizes)
        mask = pa.array(wanted)
        return Intervals(
            self.offsets[wanted],
            {name: column.filter(mask) for name, column in self.texts.items()},
            {name: column[wanted] for name, column in self.numbers.items()},
            self.digits[wanted],
            np.concatenate([[0], np.cumsum(sizes[wanted], dtype=np.int64)]),
            self.indexes[of_wanted],
            self.counts[of_wanted],
        )

    def rows(self, file: str) -> pa.RecordBatch:
        def lists(values: np.ndarray) -> pa.Array:
            return pa.ListArray.from_arrays(pa.array(self.ends, pa.int32()), pa.array(values))

        return rows(
            INTERVAL, file, len(self), offset=self.offsets, **self.texts, **self.numbers,
            digits=self.digits, indexes=lists(self.indexes), counts=lists(self.counts),
        )  # fmt: skip


def per_row(values: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Sums by row; that the running sum may wrap around does not harm the differences."""
    running = np.concatenate([np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)])
    return np.asarray(running[ends[1:]] - running[ends[:-1]])


def rows_with(flags: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Which rows have a bucket that is flagged; mostly none has."""
    return per_row(flags, ends) > 0 if flags.any() else np.zeros(len(ends) - 1, bool)


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
        yield (combined(intervals, self.window) if self.window else intervals).rows(self.file)

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
    geometries = np.stack(
        [numbers["lowest"], numbers["highest"], intervals.digits.astype(np.int64)]
    )
    distinct, which = np.unique(geometries, axis=1, return_inverse=True)
    known = [Geometry(*map(int, column)) for column in distinct.T]
    reasons = [geometry.fault for geometry in known]
    which = which.reshape(-1)
    bad = np.array([reason is not None for reason in reasons])[which]
    yield bad, lambda row: f"a geometry that cannot be: {reasons[which[row]]}"
    lengths = np.array([0 if geometry.fault else geometry.length for geometry in known])[which]
    owner_length = np.repeat(lengths, np.diff(intervals.ends))
    outside = (intervals.indexes < 0) | (intervals.indexes >= owner_length)
    yield (
        rows_with(outside, intervals.ends),
        (lambda row: f"a bucket outside of its geometry, which has {lengths[row]:,}"),
    )
    falling = np.zeros(len(intervals.indexes), bool)
    falling[1:] = intervals.indexes[1:] <= intervals.indexes[:-1]
    begins = intervals.ends[:-1][np.diff(intervals.ends) > 0]
    falling[begins] = False
    yield rows_with(falling, intervals.ends), "its buckets do not ascend"
    unlikely = (intervals.counts < 1) | (intervals.counts > MESSAGES_MAX)
    yield rows_with(unlikely, intervals.ends), "a count that overflows, or is not positive"
    sums = intervals.sums
    yield (sums > MESSAGES_MAX) | (sums < 0), "its counts overflow"
    yield (
        (numbers["overflow"] < 0) | (numbers["overflow"] > MESSAGES_MAX),
        ("a number of values above the highest that cannot be"),
    )
    yield (
        sums != numbers["total"],
        (lambda row: f"its counts make {sums[row]:,}, its total says {numbers['total'][row]:,}"),
    )


def combined(intervals: Intervals, window: int) -> Intervals:
    """Those of the same owner, build, geometry and window as one: their counts added up.

    What Spark would do with them next, done while they are at hand: it saves it most of the work.
    """
    columns = [*(intervals.texts[name] for name in TEXTS), intervals.digits]
    columns += [intervals.numbers["lowest"], intervals.numbers["highest"]]
    columns.append(intervals.numbers["start"] // window)
    _, first, group = np.unique(codes_of(columns), return_index=True, return_inverse=True)
    group = group.reshape(-1)
    length = int(intervals.indexes.max(initial=0)) + 1
    cells = np.repeat(group, np.diff(intervals.ends)) * length + intervals.indexes
    filled, counts = sums_by(cells, intervals.counts, len(first) * length)
    row, indexes = filled // length, filled % length
    numbers = {name: column[first] for name, column in intervals.numbers.items()}
    for name in ("total", "overflow"):
        numbers[name] = np.zeros(len(first), np.int64)
        np.add.at(numbers[name], group, intervals.numbers[name])
    np.minimum.at(numbers["start"], group, intervals.numbers["start"])
    np.maximum.at(numbers["end"], group, intervals.numbers["end"])
    return Intervals(
        intervals.offsets[first],
        {name: column.take(pa.array(first)) for name, column in intervals.texts.items()},
        numbers,
        intervals.digits[first],
        np.searchsorted(row, np.arange(len(first) + 1)),
        indexes.astype(np.int32),
        counts,
    )


def sums_by(cells: np.ndarray, counts: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Which cells there are, ascending, and the sum of each."""
    if size <= 16 * len(cells) + (1 << 20) and int(counts.max(initial=0)) < 1 << 28:
        # floating point, but of whole numbers below 2^53: a batch has less than 2^25 buckets
        sums = np.bincount(cells, counts, size)
        filled = np.flatnonzero(sums)
        return filled, sums[filled].astype(np.int64)
    order = np.argsort(cells, kind="stable")
    filled, begins = np.unique(cells[order], return_index=True)
    return filled, np.add.reduceat(counts[order], begins) if len(begins) else counts


def codes_of(columns: list[Any]) -> np.ndarray:
    """A number for each different row of some columns."""
    codes = np.zeros(len(columns[0]), np.int64)
    most = 1
    for column in columns:
        encoded = as_array(column, None).dictionary_encode()
        size = max(len(encoded.dictionary), 1)
        if most * size >= 1 << 62:
            codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
            most = len(codes)
        codes = codes * size + np.asarray(encoded.indices)
        most *= size
    return codes


def rows(sort: str, file: str, count: int, **columns: Any) -> pa.RecordBatch:
    """A batch of one sort; what is not given is null."""
    given = columns | {"sort": repeated(sort, count), "file": repeated(file, count)}
    arrays = [
        as_array(given[name], kind) if name in given else pa.nulls(count, kind)
        for name, kind in zip(SCHEMA.names, SCHEMA.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def as_array(values: Any, kind: pa.DataType | None) -> pa.Array:
    if isinstance(values, pa.Array):
        return values if kind in (None, values.type) else values.cast(kind)
    return pa.array(values, kind)


def repeated(text: str | None, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)
