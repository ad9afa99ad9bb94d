"""What a spool is read as: rows of three sorts.

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

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from shmbroker.perf.spark import counts
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
    def geometries(self) -> tuple[list[Geometry], np.ndarray]:
        """Those that there are, and which row has which."""
        columns = [self.numbers["lowest"], self.numbers["highest"], self.digits]
        first, which = grouped(columns)
        return [Geometry(*(int(column[row]) for column in columns)) for row in first], which

    @cached_property
    def lengths(self) -> np.ndarray:
        """How many buckets a row may have."""
        known, which = self.geometries
        return np.array([0 if one.fault else one.length for one in known], np.int64)[which]

    @cached_property
    def checked(self) -> tuple[np.ndarray, np.ndarray]:
        """Sums, and what is wrong with the buckets."""
        return counts.checked(self.ends, self.indexes, self.counts, self.lengths, MESSAGES_MAX)

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


def grouped(columns: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the same values: where each group begins, and each row's group."""
    encoded = pa.array(codes_of(columns)).dictionary_encode()
    group = np.asarray(encoded.indices)
    first = np.empty(len(encoded.dictionary), np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]  # of several the last stays
    return first, group


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
