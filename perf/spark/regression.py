"""Is a build slower than the one before it?  A test that knows nothing but histograms.

What is drawn independently is not a message, as those of one moment share their fate, but a
block: some minutes of a group of hosts, merged.  If the builds do not differ, it does not matter
which blocks are called "after": so the labels are shuffled some hundred times, the histograms
merged anew each time, and the change of a percentile that this makes is what chance makes.

All queues, kinds and percentiles are tested at once.  So each change is standardised by what
chance does to it, and compared with the *largest* that chance has made anywhere, shuffle by
shuffle, with the same labels for all queues (Westfall and Young's maxT).  That makes `p` the
chance that a whole run without any difference raises even one alarm as strong as this; queues that
rise and fall together cost no power.

Values above the highest have no percentile: where there are any, their share is one more of these
statistics.

Assumed: that blocks are independent, so they must be longer than what makes a bad moment.  An
alarm also needs a change that matters: `least`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from shmbroker.perf.spark.buckets import ABOVE, HIGHEST_VALUE, LOWEST_VALUE, merged
from shmbroker.perf.spark.tables import NoTables

OWNER = ("vhost", "queue", "kind")
HOST_GROUPS = 32
"""Hosts are put together, so that a large fleet has no more blocks than are of use."""

RESULT = (
    "vhost STRING, queue STRING, kind STRING, percentile DOUBLE, before_ns DOUBLE, "
    "after_ns DOUBLE, above_before DOUBLE, above_after DOUBLE, ratio DOUBLE, score DOUBLE, "
    "blocks_before INT, blocks_after INT, by_chance ARRAY<DOUBLE>"
)
"""A row is of a percentile, or of the share above the highest; what is of the other is null."""
RESULT_ARROW = pa.schema(
    [(name, pa.string()) for name in OWNER]
    + [
        (name, pa.float64())
        for name in ("percentile", "before_ns", "after_ns", "above_before", "above_after",
                     "ratio", "score")
    ]
    + [("blocks_before", pa.int32()), ("blocks_after", pa.int32())]
    + [("by_chance", pa.list_(pa.float64()))]
)


@dataclass(frozen=True)
class Plan:
    """How to test; `alpha` is the chance of any false alarm in a run."""

    before: str
    after: str
    percentiles: tuple[float, ...] = (50.0, 90.0, 99.0)
    alpha: float = 0.01
    least: float = 0.02
    block_seconds: int = 300
    shuffles: int = 999
    seed: int = 1


def regressions(histograms: DataFrame, plan: Plan) -> DataFrame:
    """One row per queue, kind and statistic, the least probable by chance first."""
    known = {row.build for row in histograms.select("build").distinct().collect()}
    for build in (plan.before, plan.after):
        if build not in known:
            there = ", ".join(sorted(known)) or "none"
            raise NoTables(f"there is nothing of build {build!r}; there are: {there}")
    time_block = f.floor(f.unix_seconds("window") / plan.block_seconds)
    block = time_block * HOST_GROUPS + f.pmod(f.xxhash64("host"), f.lit(HOST_GROUPS))
    chosen = histograms.where(f.col("build").isin(plan.before, plan.after))
    buckets = merged(chosen.withColumn("block", block), [*OWNER, "build", "block"], alike=OWNER)
    blocks = buckets.select(
        *OWNER, (f.col("build") == plan.after).alias("is_after"), "block", "index", "count",
        f.expr(LOWEST_VALUE).alias("low"), f.expr(HIGHEST_VALUE).alias("high"),
    )  # fmt: skip

    def compare(table: pa.Table) -> pa.Table:
        return compared(table, plan)

    found = blocks.groupBy(*OWNER).applyInArrow(compare, RESULT).cache()
    largest = largest_by_chance(found)
    # an empty list if no queue has blocks of both builds: then there is no row either
    by_chance = ",".join(map(repr, largest)) or "0.0"
    reached = f.expr(f"size(filter(array({by_chance}), x -> x >= score))")
    tests = f.lit(float(plan.shuffles + 1))
    return (
        found.drop("by_chance")
        .withColumn("p", (reached + 1) / tests)
        .withColumn("alarm", (f.col("p") <= plan.alpha) & (f.col("ratio") >= 1 + plan.least))
        .withColumn("build_before", f.lit(plan.before))
        .withColumn("build_after", f.lit(plan.after))
        .withColumn("alpha", f.lit(plan.alpha))
        .orderBy("p", f.desc("score"))
    )


def largest_by_chance(found: DataFrame) -> list[float]:
    """The largest score that each shuffle has made anywhere."""
    rows = (
        found.select(f.posexplode("by_chance").alias("shuffle", "score"))
        .groupBy("shuffle")
        .agg(f.max("score").alias("score"))
        .collect()
    )
    return [row.score for row in rows]


def compared(table: pa.Table, plan: Plan) -> pa.Table:
    """One queue's blocks: the change of each statistic, and what shuffles make of it."""
    block = np.asarray(table["block"]) * 2 + np.asarray(table["is_after"])
    index = np.asarray(table["index"])
    blocks, row = np.unique(block, return_inverse=True)
    indexes, first, column = np.unique(index, return_index=True, return_inverse=True)
    counts = np.zeros((len(blocks), len(indexes)))
    counts[row, column] = np.asarray(table["count"])
    inside = indexes != ABOVE
    above = counts[:, ~inside].sum(axis=1)
    low = np.asarray(table["low"]).astype(float)[first][inside]
    high = np.asarray(table["high"]).astype(float)[first][inside] + 1
    is_after = (blocks & 1).astype(bool)
    if is_after.all() or not is_after.any():
        return RESULT_ARROW.empty_table()
    labels = np.vstack([is_after, shuffled(blocks, is_after, plan)])
    common = {name: table[name][0].as_py() for name in OWNER}
    common |= {"blocks_before": int((~is_after).sum()), "blocks_after": int(is_after.sum())}
    rows = []
    for percentile in plan.percentiles if inside.any() else ():
        at = partial(between, low=low, high=high, percentile=percentile)
        before, after, change = changed(counts[:, inside], labels, at)
        rows.append({"percentile": percentile, "before_ns": before, "after_ns": after} | change)
    if above.any():
        both = np.column_stack([counts[:, inside].sum(axis=1), above])
        before, after, change = changed(both, labels, share_above)
        rows.append({"above_before": before, "above_after": after} | change)
    return pa.Table.from_pylist([common | row for row in rows], RESULT_ARROW)


def shuffled(blocks: np.ndarray, is_after: np.ndarray, plan: Plan) -> np.ndarray:
    """Which blocks are "after", shuffle by shuffle; a block has its lot from its name.

    So queues that have the same blocks are shuffled alike.
    """
    lots = np.stack(
        [
            np.random.default_rng([plan.seed, int(b) & (1 << 63) - 1]).random(plan.shuffles)
            for b in blocks
        ]
    )
    order = np.argsort(lots, axis=0)
    labels = np.zeros((plan.shuffles, len(blocks)), bool)
    chosen = order[: int(is_after.sum())]
    labels[np.arange(plan.shuffles)[None, :], chosen] = True
    return labels


def changed(
    counts: np.ndarray, labels: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray]
) -> tuple[float, float, dict[str, Any]]:
    """What it is before and after, and how much that says.

    The real labels are the first row; of the others is known that chance made them.
    """
    after = labels.astype(float) @ counts
    before = counts.sum(axis=0) - after
    values = [statistic(some) for some in (before, after)]
    change = np.log(values[1]) - np.log(values[0])
    chance = change[1:]
    spread = max(float(chance.std()), 1e-9)
    scores = (change - chance.mean()) / spread
    said = {"ratio": float(np.exp(change[0])), "score": float(scores[0]),
            "by_chance": scores[1:].tolist()}  # fmt: skip
    return float(values[0][0]), float(values[1][0]), said


def share_above(counts: np.ndarray) -> np.ndarray:
    """Of each row, which has what is inside and what is above; half a message more, so that a
    change from none has a size, too."""
    return (counts[:, 1] + 0.5) / (counts.sum(axis=1) + 1)


def between(counts: np.ndarray, low: np.ndarray, high: np.ndarray, percentile: float) -> np.ndarray:
    """A percentile of each row, with a straight line inside of a bucket: steps hide change."""
    up_to = np.cumsum(counts, axis=1)
    wanted = up_to[:, -1:] * percentile / 100
    at = np.minimum((up_to < wanted).sum(axis=1), counts.shape[1] - 1)
    rows = np.arange(len(counts))
    inside = counts[rows, at]
    missing = wanted[:, 0] - (up_to[rows, at] - inside)
    share = np.divide(missing, inside, out=np.zeros_like(missing), where=inside > 0)
    return np.maximum(low[at] + share * (high[at] - low[at]), 1)
