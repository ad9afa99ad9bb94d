"""HDR histograms of what a benchmark measured, in nanoseconds: made, merged, told as a ladder."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from shmbroker.ipc.latency.latency import Histogram, Range
from shmbroker.perf.spark.geometry import Geometry

GEOMETRY = Geometry(1, 3_600_000_000_000, 3)
LADDER = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)


def histogram_of(nanoseconds: ArrayLike) -> Histogram:
    """What is below 0 counts as 0."""
    values = np.clip(np.asarray(nanoseconds, np.int64), 0, GEOMETRY.highest)
    bits = np.frexp(values.astype(float))[1]  # the length in bits, for they are below 2^53
    bucket = np.maximum(bits - (GEOMETRY.unit + GEOMETRY.half + 1), 0)
    indexes, counts = np.unique(
        (bucket << GEOMETRY.half) + (values >> (bucket + GEOMETRY.unit)), return_counts=True
    )
    shape = Range(GEOMETRY.lowest, GEOMETRY.highest, GEOMETRY.digits)
    return _histogram(shape, indexes, counts)


def merged(histograms: Sequence[Histogram]) -> Histogram:
    """Of one range, all of them."""
    shape = histograms[0].range
    counts = np.zeros(shape.length, np.int64)
    for each in histograms:
        counts[each.indexes] += np.asarray(each.counts)
    (indexes,) = counts.nonzero()
    return _histogram(shape, indexes, counts[indexes])


def _histogram(shape: Range, indexes: np.ndarray, counts: np.ndarray) -> Histogram:
    return Histogram(shape, array("q", indexes.tolist()), array("q", counts.tolist()))


def ladder(histogram: Histogram) -> dict[str, int]:
    """As it goes into JSON."""
    return {f"p{each:g}_ns": histogram.percentile(each) for each in LADDER}


def rung(percent: float) -> str:
    """The name of a step of the ladder."""
    return "max" if percent == 100 else f"p{percent:g}"
