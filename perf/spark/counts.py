"""Counts of many histograms at once, by `counts.c`: unpacked, checked, added up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shmbroker.perf.spark._native import ffi, lib

FOREIGN: int = lib.SB_FOREIGN
"""No header of a histogram, or none that fits."""
WHAT = {
    lib.SB_TRUNCATED: "its counts are truncated",
    lib.SB_OVERFLOWS: "a count that overflows",
    lib.SB_TOO_LONG: "more empty buckets than there can be",
}
OUTSIDE: int = lib.SB_OUTSIDE
FALLING: int = lib.SB_FALLING
UNLIKELY: int = lib.SB_UNLIKELY
ZERO = np.zeros(1, np.int64)


@dataclass(frozen=True)
class Unpacked:
    """Buckets of row i are at ends[i]:ends[i + 1]; a faulty one has none."""

    lowest: np.ndarray
    highest: np.ndarray
    digits: np.ndarray
    faults: np.ndarray
    ends: np.ndarray
    indexes: np.ndarray
    counts: np.ndarray


def unpacked(payloads: list[bytes]) -> Unpacked:
    """HdrHistogram's V2, inflated."""
    rows = len(payloads)
    edges = np.concatenate(
        [ZERO, np.cumsum([len(payload) for payload in payloads], dtype=np.int64)]
    )
    octets = b"".join(payloads)
    lowest, highest, digits = np.zeros((3, rows), np.int64)
    faults, ends = np.empty(rows, np.uint8), np.empty(rows + 1, np.int64)
    indexes, counts = np.empty(len(octets), np.int32), np.empty(len(octets), np.int64)
    found = ffi.new("struct sb_counts *")
    found.lowest, found.highest, found.digits = longs(lowest), longs(highest), longs(digits)
    found.faults, found.ends = flags_of(faults), longs(ends)
    found.indexes, found.counts = integers(indexes), longs(counts)
    filled = lib.sb_unpack(ffi.from_buffer("uint8_t[]", octets), longs(edges), rows, found)
    return Unpacked(
        lowest, highest, digits.astype(np.int32), faults, ends, indexes[:filled], counts[:filled]
    )


def checked(
    ends: np.ndarray, indexes: np.ndarray, counts: np.ndarray, lengths: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Each row's sum, which may wrap, and what is wrong with its buckets."""
    rows = len(ends) - 1
    if not len(indexes) == len(counts) == ends[-1]:
        raise ValueError(f"{len(indexes)} buckets and {len(counts)} counts of {ends[-1]}")
    sums, flags = np.empty(rows, np.int64), np.empty(rows, np.uint8)
    lib.sb_check(
        longs(ends), rows, integers(indexes), longs(counts), longs(lengths), most,
        longs(sums), flags_of(flags),
    )  # fmt: skip
    return sums, flags


def combined(
    group: np.ndarray, groups: int, ends: np.ndarray, indexes: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of the same group as one: ends, indexes, counts.  Only for what was found good."""
    order = np.argsort(group, kind="stable").astype(np.int64)
    group_ends = np.concatenate([ZERO, np.cumsum(np.bincount(group, minlength=groups))])
    length = int(indexes.max(initial=0)) + 1
    scratch, touched = (
        np.zeros(length + lib.SB_BLOCK, np.int64),
        np.zeros(length // lib.SB_BLOCK + 1, np.uint8),
    )
    new_ends = np.empty(groups + 1, np.int64)
    new_indexes, new_counts = np.empty(len(indexes), np.int32), np.empty(len(counts), np.int64)
    filled = lib.sb_combine(
        longs(order), longs(group_ends), groups, longs(ends), integers(indexes), longs(counts),
        longs(scratch), flags_of(touched),
        longs(new_ends), integers(new_indexes), longs(new_counts),
    )  # fmt: skip
    return new_ends, new_indexes[:filled].copy(), new_counts[:filled].copy()


def longs(array: np.ndarray) -> Any:
    return ffi.from_buffer("int64_t[]", np.ascontiguousarray(array, np.int64))


def integers(array: np.ndarray) -> Any:
    return ffi.from_buffer("int32_t[]", np.ascontiguousarray(array, np.int32))


def flags_of(array: np.ndarray) -> Any:
    return ffi.from_buffer("uint8_t[]", array)
