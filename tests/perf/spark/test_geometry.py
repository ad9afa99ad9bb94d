"""Which bucket a value is in: as the hdrhistogram package has it."""

from __future__ import annotations

from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from shmbroker.perf.spark.geometry import (
    Geometry,
    half_sql,
    highest_value_sql,
    index_sql,
    lowest_value_sql,
    unit_sql,
)
from tests.perf.spark.histograms import geometries


@given(geometries(digits=4), st.data())
def test_bucket_for_bucket_as_hdrhistogram(geometry: Geometry, data: Any) -> None:
    theirs = HdrHistogram(geometry.lowest, geometry.highest, geometry.digits)
    assert geometry.fault is None
    assert geometry.length == theirs.counts_len
    for value in data.draw(st.lists(st.integers(0, geometry.highest), max_size=20)):
        index = geometry.index(value)
        assert index == theirs.get_counts_array_index(value)
        assert geometry.lowest_value(index) == theirs.get_lowest_equivalent_value(value)
        assert geometry.highest_value(index) == theirs.get_highest_equivalent_value(value)
        assert geometry.highest_value(index) - value <= max(
            value * geometry.error, (1 << geometry.unit) - 1
        )


@given(geometries(), geometries(), st.data())
def test_a_bucket_is_in_one_of_each_coarser_geometry(a: Geometry, b: Geometry, data: Any) -> None:
    coarse = Geometry(max(a.lowest, b.lowest), max(a.highest, b.highest), min(a.digits, b.digits))
    for value in data.draw(st.lists(st.integers(0, a.highest), max_size=20)):
        whole = a.index(value)
        ends = a.lowest_value(whole), a.highest_value(whole)
        assert len({coarse.index(end) for end in (*ends, value)}) == 1


def test_sql_does_the_same_arithmetic(spark: Any) -> None:
    cases = [
        (lowest, digits, value)
        for lowest in (1, 7, 1000, 1024)
        for digits in (1, 2, 3, 4, 5)
        for value in (0, 1, 255, 256, 257, 99_999, 1 << 31, (1 << 45) + 12345)
    ]
    expected = []
    for lowest, digits, value in cases:
        geometry = Geometry(lowest, 1 << 46, digits)
        index = geometry.index(value)
        expected.append((index, geometry.lowest_value(index), geometry.highest_value(index)))
    frame = spark.createDataFrame(cases, "lowest BIGINT, digits INT, value BIGINT")
    unit, half = unit_sql("lowest"), f"({half_sql('digits')})"
    found = frame.selectExpr("*", f"{unit} AS unit", f"{half} AS half")
    found = found.selectExpr("*", f"{index_sql('value', 'unit', 'half')} AS index")
    found = found.selectExpr(
        "index",
        lowest_value_sql("index", "unit", "half"),
        highest_value_sql("index", "unit", "half"),
    )
    assert [tuple(row) for row in found.collect()] == expected


@pytest.mark.parametrize(
    ("geometry", "what"),
    [
        (Geometry(0, 1000, 2), "lowest value 0"),
        (Geometry(1, 1000, 6), "6 significant digits"),
        (Geometry(1, 1000, -1), "significant digits"),
        (Geometry(1000, 1000, 2), "at least twice"),
        (Geometry(1 << 60, 1 << 62, 3), "more than 64 bits"),
    ],
)
def test_a_geometry_that_cannot_be_says_why(geometry: Geometry, what: str) -> None:
    assert what in (geometry.fault or "")
