"""The test of builds: it finds what there is, and raises no alarm where there is nothing."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shmbroker.perf.spark import intake
from shmbroker.perf.spark.buckets import ABOVE
from shmbroker.perf.spark.fleet import Fleet, buckets_of, latencies, write_parquet
from shmbroker.perf.spark.geometry import Geometry
from shmbroker.perf.spark.regression import Plan, compared, regressions
from shmbroker.perf.spark.tables import Tables

PLAN = Plan("1", "2", block_seconds=60)
QUEUES = 50
BLOCKS = 16
MESSAGES = 20_000
GEOMETRY = Geometry(1, 60 * 10**9, 2)

lowest = cache(GEOMETRY.lowest_value)
highest = cache(GEOMETRY.highest_value)
"""Of few buckets, asked for often."""


def block_table(queue: int, seed: int, slower: float, mood: np.ndarray) -> pa.Table:
    """One queue's blocks, as Spark would merge them; `mood` is what all queues share."""
    dice = np.random.default_rng([seed, queue])
    pool = Fleet(variants=1, messages=MESSAGES)
    columns: dict[str, list[Any]] = {name: [] for name in ("is_after", "block", "index", "count")}
    for block in range(2 * BLOCKS):
        is_after = block >= BLOCKS
        values = latencies(pool, queue, False, dice)[0] * mood[block]
        if is_after:
            values = np.where(values > np.quantile(values, 0.98), values * slower, values)
        index, count = np.unique(buckets_of(values, GEOMETRY), return_counts=True)
        columns["is_after"] += [is_after] * len(index)
        columns["block"] += [block] * len(index)
        columns["index"] += index.tolist()
        columns["count"] += count.tolist()
    size = len(columns["index"])
    names = {"vhost": ["v"] * size, "queue": [f"q{queue}"] * size, "kind": ["k"] * size}
    low = [lowest(index) for index in columns["index"]]
    high = [highest(index) for index in columns["index"]]
    return pa.table(names | columns | {"low": low, "high": high})


def alarms(queues: int, seed: int, slower: dict[int, float], plan: Plan = PLAN) -> list[str]:
    """Which are found, by the same rule as in Spark."""
    mood = np.random.default_rng(seed).lognormal(0, 0.01, 2 * BLOCKS)
    rows = [
        row
        for queue in range(queues)
        for row in compared(
            block_table(queue, seed, slower.get(queue, 1.0), mood), plan
        ).to_pylist()
    ]
    largest = np.max([row["by_chance"] for row in rows], axis=0)
    return [
        row["queue"]
        for row in rows
        if (1 + (largest >= row["score"]).sum()) / (plan.shuffles + 1) <= plan.alpha
        and row["ratio"] >= 1 + plan.least
    ]


@pytest.mark.parametrize("seed", range(3))
def test_ten_percent_at_p99_of_one_queue_are_found(seed: int) -> None:
    assert set(alarms(8, seed, {5: 1.1})) == {"q5"}


def test_runs_without_a_change_raise_no_alarm() -> None:
    assert [alarms(4, seed, {}) for seed in range(20)] == [[]] * 20


@pytest.mark.skipif("SHMBROKER_LONG" not in os.environ, reason="make latency-long")
def test_the_rate_of_false_alarms_is_as_stated() -> None:
    """At 20 %, without a least change: 40 of 200 runs, and at most what chance makes of that."""
    plan = replace(PLAN, alpha=0.2, least=0.0, shuffles=199)
    false = sum(bool(alarms(3, seed, {}, plan)) for seed in range(200))
    assert 20 <= false <= 60  # 40 ± 3.5 standard deviations


def test_too_few_blocks_prove_nothing() -> None:
    mood = np.ones(2 * BLOCKS)
    whole = block_table(1, 1, 3.0, mood)
    few = whole.filter(pa.compute.is_in(whole["block"], pa.array([0, BLOCKS])))
    rows = compared(few, PLAN).to_pylist()
    largest = np.max([row["by_chance"] for row in rows], axis=0)
    assert all((1 + (largest >= row["score"]).sum()) / 1000 > 0.4 for row in rows)


@pytest.mark.parametrize("inside", [1000, 0])
def test_what_has_grown_beyond_the_highest_is_an_alarm(inside: int) -> None:
    rows = []
    for block in range(16):
        mine = {"vhost": "v", "queue": "q", "kind": "k", "is_after": block >= 8, "block": block}
        bucket = {"index": 100, "count": inside, "low": lowest(100), "high": highest(100)}
        more = {"index": ABOVE, "count": 50 + block % 3, "low": -1, "high": -1}
        rows += [mine | bucket] if inside else []
        rows += [mine | more] if block >= 8 or not inside else []
    found = compared(pa.Table.from_pylist(rows), PLAN).to_pylist()
    [above] = [row for row in found if row["percentile"] is None]
    assert len(found) == (4 if inside else 1)
    if not inside:
        assert above["ratio"] == pytest.approx(1, abs=0.01)
        return
    assert (above["above_before"], above["above_after"]) == pytest.approx((0, 0.05), abs=0.005)
    largest = np.max([row["by_chance"] for row in found], axis=0)
    assert (1 + (largest >= above["score"]).sum()) / 1000 <= PLAN.alpha
    assert above["ratio"] > 1 + PLAN.least


def found_in_spark(spark: Any, folder: Path, fleet: Fleet) -> list[Any]:
    write_parquet(fleet, folder / "spool", 10)
    intake.merge(spark, str(folder / "spool"), str(folder / "tables"), 60)
    histograms = Tables(spark, str(folder / "tables")).histograms
    return regressions(histograms, PLAN).collect()


def test_spark_finds_it_too(spark: Any, tmp_path: Path) -> None:
    fleet = Fleet(hosts=4, queues=3, intervals=60, messages=1500, builds=("1", "2"), variants=100,
                  slower=("q1", 1.1))  # fmt: skip
    found = found_in_spark(spark, tmp_path, fleet)
    assert [(row.queue, row.percentile) for row in found if row.alarm] == [("q1", 99.0)]
    assert 1.05 < found[0].ratio < 1.15
    assert len(found) == 9


@pytest.mark.skipif("SHMBROKER_LONG" not in os.environ, reason="make latency-long")
def test_one_of_fifty_is_found_and_twenty_runs_without_a_change_are_quiet(
    spark: Any, tmp_path: Path
) -> None:
    fleet = Fleet(hosts=10, queues=QUEUES, intervals=60, messages=1500, builds=("1", "2"),
                  variants=100)  # fmt: skip
    found = found_in_spark(spark, tmp_path / "slower", replace(fleet, slower=("q17", 1.1)))
    assert {row.queue for row in found if row.alarm} == {"q17"}
    for seed in range(20):
        quiet = found_in_spark(spark, tmp_path / str(seed), replace(fleet, seed=seed))
        assert not [row for row in quiet if row.alarm]
