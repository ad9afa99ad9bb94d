"""Counts of HDR histograms, which have thousands of buckets, in the few of a metric.

A bucket of a metric has all times up to its bound.  One of the HDR histogram that reaches beyond a
bound counts above it: what is said to be faster than the bound was faster.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from shmbroker.ipc._native import ffi
from shmbroker.ipc.latency.latency import Counts, Range

NS: Final = 1e9
BOUNDS: Final = (
    *(step * 10**decade for decade in range(3, 10) for step in (1, 2, 5)), 10**10, 10**11
)  # fmt: skip
"""Nanoseconds: from a microsecond to 100 s."""
LABELS: Final = (*(f"{bound / NS:g}" for bound in BOUNDS), "+Inf")
_EDGES: dict[Range, NDArray[np.int64]] = {}


def edges_of(range_: Range) -> NDArray[np.int64]:
    """The highest time of each bucket of such a histogram; the range of a queue seldom changes."""
    if range_ not in _EDGES:
        _EDGES[range_] = np.array([range_.highest_of(each) for each in range(range_.length)])
    return _EDGES[range_]


class Buckets:
    """Sums of histograms, also of several with other ranges."""

    def __init__(self) -> None:
        self.counts = np.zeros(len(BOUNDS) + 1, np.int64)
        self.seconds = 0.0

    def add(self, counts: Counts) -> None:
        values = np.frombuffer(ffi.buffer(counts.values), np.int64)
        edges, values, overflow = edges_of(counts.range), values[:-1], int(values[-1])
        np.add.at(self.counts, np.searchsorted(BOUNDS, edges), values)
        self.counts[-1] += overflow
        self.seconds += float(edges @ values) / NS

    def shown(self) -> list[tuple[str, float]]:
        """Cumulative, as Prometheus has them."""
        return [
            (label, float(count))
            for label, count in zip(LABELS, np.cumsum(self.counts).tolist(), strict=True)
        ]
