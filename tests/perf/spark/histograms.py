"""Histograms made up by Hypothesis, and what the `hdrhistogram` package makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram
from hypothesis import strategies as st

from shmbroker.perf.spark.geometry import Geometry


@dataclass(frozen=True)
class Recorded:
    """A histogram of values and how often each was."""

    geometry: Geometry
    values: dict[int, int] = field(default_factory=dict)

    @property
    def theirs(self) -> Any:
        g = self.geometry
        histogram = HdrHistogram(g.lowest, g.highest, g.digits)
        for value, count in self.values.items():
            assert histogram.record_value(value, count)
        return histogram

    @property
    def sparse(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for value, count in self.values.items():
            index = self.geometry.index(value)
            found[index] = found.get(index, 0) + count
        return dict(sorted(found.items()))


def sparse_of(histogram: Any) -> dict[int, int]:
    counts = np.ctypeslib.as_array(histogram.counts)
    return {int(index): int(counts[index]) for index in np.flatnonzero(counts)}


def merged_by_them(histograms: Iterable[Any]) -> Any:
    first, *others = histograms
    for other in others:
        first.add(other)
    return first


@st.composite
def geometries(draw: Any, digits: int = 5) -> Geometry:
    lowest = draw(st.one_of(st.just(1), st.integers(1, 1 << 20), st.sampled_from([8, 1000, 1024])))
    highest = draw(st.integers(2 * lowest, 1 << 40))
    return Geometry(lowest, highest, draw(st.integers(1, digits)))


@st.composite
def recorded(draw: Any, geometry: Geometry | None = None, least: int = 0) -> Recorded:
    geometry = geometry or draw(geometries(digits=3))
    values = st.integers(0, geometry.highest)
    small = st.integers(0, min(geometry.highest, 5000))
    counts = st.one_of(st.integers(1, 100), st.integers(1, 1 << 30))
    found = draw(st.dictionaries(st.one_of(values, small), counts, min_size=least, max_size=40))
    return Recorded(geometry, found)
