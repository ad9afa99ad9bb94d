"""What Spark merges equals what the hdrhistogram package merges, exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shmbroker.perf.spark import intake
from shmbroker.perf.spark.buckets import merged
from shmbroker.perf.spark.burn import burn
from shmbroker.perf.spark.encoding import encoded
from shmbroker.perf.spark.fleet import Fleet, write_hlog, write_parquet
from shmbroker.perf.spark.geometry import Geometry
from shmbroker.perf.spark.histograms import TOGETHER_MAX, merged_intervals
from shmbroker.perf.spark.interval import INTERVAL, rows
from shmbroker.perf.spark.outliers import outliers
from shmbroker.perf.spark.percentiles import name_of, percentiles, places
from shmbroker.perf.spark.tables import Tables
from shmbroker.perf.spark.trends import trends
from tests.perf.spark.histograms import Recorded, merged_by_them, recorded

LADDER = (0.0, 1.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 100.0)
SECOND = 10**9
MINUTE = 60 * SECOND

slow = settings(max_examples=6, suppress_health_check=[*HealthCheck])


def intervals(spark: Any, found: list[tuple[str, int, Recorded]], **more: Any) -> Any:
    """A spool's rows: queue, start and histogram."""
    queues, starts, histograms = zip(*found, strict=True)
    count = len(found)
    sparse = [histogram.sparse for histogram in histograms]
    columns: dict[str, Any] = {
        "host": ["h"] * count, "vhost": ["v"] * count, "queue": queues, "kind": ["k"] * count,
        "build": ["b"] * count, "start": starts, "end": [start + SECOND for start in starts],
        "lowest": [h.geometry.lowest for h in histograms],
        "highest": [h.geometry.highest for h in histograms],
        "digits": [h.geometry.digits for h in histograms],
        "total": [sum(s.values()) for s in sparse], "overflow": [0] * count,
        "indexes": [[*s] for s in sparse], "counts": [[*s.values()] for s in sparse],
    }  # fmt: skip
    batch = rows(INTERVAL, "f", count, **columns | more)
    return spark.createDataFrame(pa.Table.from_batches([batch]))


@slow
@given(st.data())
def test_percentiles_equal_those_of_hdrhistogram(spark: Any, data: Any) -> None:
    found, expected = [], {}
    for number in range(12):
        first = data.draw(recorded(least=1))
        group = [first, *data.draw(st.lists(recorded(first.geometry), max_size=4))]
        apart = data.draw(st.sampled_from([5 * SECOND, MINUTE // 2, MINUTE]))
        found += [(f"q{number}", apart * place, one) for place, one in enumerate(group)]
        theirs = merged_by_them(one.theirs for one in group)
        values = [theirs.get_value_at_percentile(percentile) for percentile in LADDER]
        expected[f"q{number}"] = [sum(sum(o.values.values()) for o in group), *values]
    histograms = merged_intervals(intervals(spark, found), MINUTE)
    names = ["total", *map(name_of, LADDER)]
    # added up whole, and bucket by bucket; there each queue's geometry is one of several
    for together_max in (TOGETHER_MAX, 0):
        with patch("shmbroker.perf.spark.histograms.TOGETHER_MAX", together_max):
            table = percentiles(histograms, ["queue"], LADDER).collect()
        assert {row.queue: [row[name] for name in names] for row in table} == expected
        assert not any(row.mixed for row in table)


@slow
@given(st.data())
def test_several_geometries_are_merged_as_if_recorded_in_the_coarsest(
    spark: Any, data: Any
) -> None:
    found, expected, errors = [], {}, {}
    for number in range(8):
        group = data.draw(st.lists(recorded(least=1), min_size=2, max_size=4))
        found += [(f"q{number}", 0, one) for one in group]
        coarse = Geometry(
            max(1 << one.geometry.unit for one in group), max(o.geometry.highest for o in group),
            min(one.geometry.digits for one in group),
        )  # fmt: skip
        expected[f"q{number}"] = merged_by_them(
            Recorded(coarse, one.values).theirs for one in group
        )
        errors[f"q{number}"] = coarse.error
    histograms = merged_intervals(intervals(spark, found), MINUTE)
    for row in percentiles(histograms, ["queue"], LADDER).collect():
        theirs = expected[row.queue]
        for percentile in LADDER:
            assert row[name_of(percentile)] == theirs.get_value_at_percentile(percentile)
        assert row.error == errors[row.queue]


def test_what_is_above_the_highest_is_counted_beside(spark: Any) -> None:
    geometry = Geometry(1, 1000, 2)
    found = [("a", 0, Recorded(geometry, {5: 9})), ("b", 0, Recorded(geometry, {}))]
    frame = intervals(spark, found, overflow=[2, 3])
    histograms = merged_intervals(frame, MINUTE).cache()
    a, b = percentiles(histograms, ["queue"], (50.0, 100.0)).orderBy("queue").collect()
    assert (a.total, a.above, a.p50, a.max) == (9, 2, 5, 5)
    assert (b.total, b.above, b.p50, b.max) == (0, 3, None, None)
    burning = {row.queue: row for row in burn(histograms, 10, 90.0, ["queue"]).collect()}
    assert (burning["a"].above, burning["b"].above) == (2, 3)


def test_keys_with_one_row_stay_whole_and_a_spool_is_read_once(spark: Any) -> None:
    one = Recorded(Geometry(1, 1000, 2), {5: 1})
    frame = intervals(spark, [("a", 0, one), ("a", 5 * SECOND, one), ("b", 0, one)])
    whole = merged_intervals(frame, MINUTE)
    plan = plan_of(whole)
    assert plan.count("Scan") == 1
    assert "Generate" not in plan
    kept = whole.cache()
    plan = plan_of(percentiles(kept, ["queue", "window"]))
    # what is behind the cache is of the first plan
    assert not {"Generate", "Exchange"} & set(plan.partition("InMemoryTableScan")[0].split())
    kept.unpersist()


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_a_running_sum_does_not_leave_64_bits() -> None:
    counts = [[1 << 62, 1 << 61], [1 << 62], [1, 1], []]
    batch = pa.RecordBatch.from_pydict({
        "indexes": pa.array([list(range(len(row))) for row in counts], pa.list_(pa.int32())),
        "counts": pa.array(counts, pa.list_(pa.int64())),
        "total": [sum(row) for row in counts],
    })  # fmt: skip
    half, most = places(batch, (50.0, 100.0))
    assert half.to_pylist() == [0, 0, 0, None]
    assert most.to_pylist() == [1, 0, 1, None]


def test_burn_counts_what_is_above_and_what_may_be(spark: Any) -> None:
    geometry = Geometry(1, 10**6, 1)
    values = {100: 50, 1000: 7, 1001: 3, 5000: 2}
    whole = merged_intervals(intervals(spark, [("q", 0, Recorded(geometry, values))]), MINUTE)
    [row] = burn(whole, 1000, 95.0, ["queue"]).collect()
    assert (row.messages, row.above, row.uncertain) == (62, 2, 10)
    assert row.share == 2 / 62
    assert abs(row.burn - (2 / 62) / 0.05) < 1e-12


def test_windows_are_where_intervals_begin(spark: Any) -> None:
    one = Recorded(Geometry(1, 1000, 2), {5: 1})
    starts = [1_763_740_799_999_999_999, 1_763_740_800_000_000_000, 1_763_740_859_999_999_999]
    frame = intervals(spark, [("q", start, one) for start in starts])
    found = merged(merged_intervals(frame, MINUTE), ["window"]).orderBy("window").collect()
    assert [(f"{row.window:%H:%M:%S}", row["count"]) for row in found] == [
        ("15:59:00", 1),
        ("16:00:00", 2),
    ]


def test_both_forms_of_a_fleet_come_to_the_same(spark: Any, tmp_path: Path) -> None:
    fleet = Fleet(hosts=2, queues=2, intervals=12, messages=50, variants=8)
    write_parquet(fleet, tmp_path / "columnar", 1)
    write_hlog(fleet, tmp_path / "log")
    found = []
    for form, window in (("columnar", 0), ("columnar", 60), ("log", 60)):
        reading = spark.read.format("shmbroker").option("windowSeconds", window)
        histograms = merged_intervals(reading.load(str(tmp_path / form)), MINUTE)
        found.append(sorted(tuple(row) for row in histograms.collect()))
    assert found[0] == found[1] == found[2]
    assert sum(sum(row[-1]) for row in found[0]) == fleet.rows * fleet.messages


@pytest.mark.parametrize(
    ("windows", "seconds", "why"),
    [
        (2, 5, "only 2 of at least 10 windows"),
        (20, 5, "only 95 of at least 300 s"),
        (10, 60, None),
    ],
)
def test_too_little_has_no_trend_and_says_why(
    spark: Any, windows: int, seconds: int, why: str | None
) -> None:
    one = Recorded(Geometry(1, 10**9, 3), {1000: 1})
    window = seconds * 10**9
    found = [("q", number * window, one) for number in range(windows)]
    [trend] = trends(merged_intervals(intervals(spark, found), window)).collect()
    assert trend.why == why
    assert (trend.change_per_hour is None) == (why is not None)
    assert (trend.fit is None) == (why is not None)


def test_a_message_with_two_times_is_one_message(spark: Any, tmp_path: Path) -> None:
    one = Recorded(Geometry(1, 10**9, 3), {1000: 16_000}).sparse
    row = encoded(Geometry(1, 10**9, 3), np.array([*one]), np.array([*one.values()]))
    tags = ("q;publish-take", "q;take-ack")
    lines = "".join(f"Tag={tag},1700000000.0,10.0,0.0,{row}\n" for tag in tags)
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "a-v-1.hlog").write_text(
        f"#[shmbroker spool 1 host=a vhost=v build=1]\n{lines}"
    )
    taken = intake.merge(spark, str(tmp_path / "spool"), str(tmp_path / "tables"), 60)
    assert taken.messages == 16_000


def test_foreign_tags_are_names_of_queues(spark: Any, tmp_path: Path) -> None:
    one = Recorded(Geometry(1, 10**9, 3), {1000: 5}).sparse
    row = encoded(Geometry(1, 10**9, 3), np.array([*one]), np.array([*one.values()]))
    tags = ["GET /orders", "GET%20/x", "a;b", "plain"]
    lines = "".join(f"Tag={tag},1700000000.0,10.0,0.0,{row}\n" for tag in tags)
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "server.hlog").write_text(lines)
    intake.merge(spark, str(tmp_path / "spool"), str(tmp_path / "tables"), 60)
    histograms = Tables(spark, str(tmp_path / "tables")).histograms
    found = percentiles(histograms, ("queue", "kind")).collect()
    assert sorted((row.queue, row.total) for row in found) == [(tag, 5) for tag in sorted(tags)]


def test_an_outlier_and_a_trend_are_found(spark: Any) -> None:
    geometry = Geometry(1, 10**9, 3)
    dice = np.random.default_rng(1)
    found, hosts = [], []
    for host in range(12):
        for minute in range(10):
            slower = 2.0 if host == 7 else 1.0
            values = np.rint(1000 * slower * 1.1 ** (minute / 60) * dice.uniform(0.98, 1.02, 50))
            distinct, counts = np.unique(values.astype(int), return_counts=True)
            one = dict(zip(distinct.tolist(), counts.tolist(), strict=True))
            found.append(("q", minute * MINUTE, Recorded(geometry, one)))
            hosts.append(f"host-{host}")
    histograms = merged_intervals(intervals(spark, found, host=hosts), MINUTE).cache()
    [row] = outliers(histograms).collect()
    assert row.host == "host-7"
    assert 1.9 < row.ratio < 2.1
    [trend] = trends(histograms.where("host != 'host-7'"), 50.0).collect()
    assert 0.08 < trend.change_per_hour < 0.12
    assert trend.fit > 0.8
    histograms.unpersist()
