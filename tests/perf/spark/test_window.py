"""Intervals of one window as one: the same sums however they came, and each once if in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shmbroker.perf.spark import window
from shmbroker.perf.spark.geometry import Geometry
from shmbroker.perf.spark.interval import Intervals
from shmbroker.perf.spark.journal import Journal
from tests.perf.spark.histograms import Recorded, recorded

SECOND = 10**9
GEOMETRIES = (Geometry(1, 10**6, 1), Geometry(1, 60 * 10**9, 5))
LISTED = st.lists(
    st.sampled_from(GEOMETRIES).flatmap(
        lambda of: st.tuples(st.integers(0, 40), st.sampled_from("ab"), recorded(of))
    ),
    max_size=20,
)
Listed = list[tuple[int, str, Recorded]]
Sums = dict[tuple[Any, ...], dict[int, int]]


def intervals(listed: Listed) -> Intervals:
    buckets = [one.sparse for _, _, one in listed]
    starts = np.array([start for start, _, _ in listed], np.int64) * SECOND
    geometries = [one.geometry for _, _, one in listed]
    texts = dict.fromkeys(["host", "vhost", "kind", "build"], pa.array(["x"] * len(listed)))
    numbers = {
        "start": starts,
        "end": starts + SECOND,
        "lowest": np.array([of.lowest for of in geometries], np.int64),
        "highest": np.array([of.highest for of in geometries], np.int64),
        "total": np.array([sum(of.values()) for of in buckets], np.int64),
        "overflow": np.ones(len(listed), np.int64),
    }
    return Intervals(
        np.arange(len(listed)),
        texts | {"queue": pa.array([queue for _, queue, _ in listed], pa.string())},
        numbers,
        np.array([of.digits for of in geometries], np.int32),
        np.cumsum([0, *map(len, buckets)], dtype=np.int64),
        np.array([index for of in buckets for index in of], np.int32),
        np.array([count for of in buckets for count in of.values()], np.int64),
    )


def rows_of(batches: list[Listed], size: int) -> Iterator[dict[str, Any]]:
    journal = Journal("file", size * SECOND)
    for listed in batches:
        for batch in journal.take(intervals(listed)):
            yield from batch.to_pylist()
    for batch in journal.end():
        yield from (row for row in batch.to_pylist() if row["sort"] == "interval")


def added(found: Sums, key: tuple[Any, ...], buckets: dict[int, int]) -> None:
    sums = found.setdefault(key, {})
    for index, count in buckets.items():
        sums[index] = sums.get(index, 0) + count


@given(LISTED, st.integers(1, 12), st.integers(1, 9))
def test_sums_are_the_same_in_any_order_and_any_parts(listed: Listed, size: int, part: int) -> None:
    expected: Sums = {}
    for start, queue, one in listed:
        added(expected, (start // size, queue, one.geometry.digits), one.sparse)
    found: Sums = {}
    messages = overflow = 0
    for row in rows_of([listed[at : at + part] for at in range(0, len(listed), part)], size):
        assert row["indexes"] == sorted(set(row["indexes"]))
        buckets = dict(zip(row["indexes"], row["counts"], strict=True))
        assert row["total"] == sum(buckets.values())
        assert row["start"] < row["end"] <= (row["start"] // SECOND // size + 1) * size * SECOND
        messages += row["total"]
        overflow += row["overflow"]
        added(found, (row["start"] // SECOND // size, row["queue"], row["digits"]), buckets)
    assert found == expected
    assert messages == sum(sum(one.values.values()) for _, _, one in listed)
    assert overflow == len(listed)


def ordered(count: int) -> Listed:
    one = Recorded(GEOMETRIES[0], {7: 1, 900: 2})
    return [(n, queue, one) for n in range(count) for queue in "ab"]


def test_in_the_order_of_time_each_window_comes_once() -> None:
    listed = ordered(40)
    rows = list(rows_of([listed[at : at + 3] for at in range(0, len(listed), 3)], 10))
    assert sorted((row["start"] // SECOND, row["queue"], row["total"]) for row in rows) == [
        (start, queue, 30) for start in (0, 10, 20, 30) for queue in "ab"
    ]


def test_what_is_open_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "OPEN_BUCKETS_MAX", 2)
    rows = list(rows_of([ordered(5), ordered(5)], 10))
    assert [row["total"] for row in rows] == [15, 15, 15, 15]
    monkeypatch.setattr(window, "OPEN_BUCKETS_MAX", 4)
    monkeypatch.setattr(window, "TOTAL_MAX", 40)
    rows = list(rows_of([ordered(5), ordered(9), ordered(1)], 10))
    assert [row["total"] for row in rows] == [42, 42, 3, 3]
