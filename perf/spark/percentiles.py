"""Percentiles of merged histograms: the same values as the `hdrhistogram` package has.

The value at a percentile p is the highest of the first bucket up to which there are at least
int(p * total / 100 + 0.5) values, and at least one; at 0 it is that bucket's lowest.  What is
above the highest value is in no bucket, so it has no percentile: it is counted beside, `above`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from shmbroker.perf.spark.buckets import ABOVE, ERROR, HIGHEST_VALUE, LOWEST_VALUE, merged

LADDER = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)


def name_of(percentile: float) -> str:
    """p50, p99_9, max."""
    return "max" if percentile == 100 else f"p{percentile:g}".replace(".", "_")


def running(buckets: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Buckets by keys with `up_to`, how many values are up to and in each, and `total`."""
    whole = Window.partitionBy(*keys)
    so_far = whole.orderBy("index").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    inside = f.when(f.col("index") != ABOVE, f.col("count")).otherwise(f.lit(0))
    return (
        merged(buckets, keys)
        .withColumn("inside", inside)
        .withColumn("up_to", f.sum("inside").over(so_far))
        .withColumn("total", f.sum("inside").over(whole))
    )


def percentiles(
    buckets: DataFrame, keys: Sequence[str], ladder: Sequence[float] = LADDER
) -> DataFrame:
    """One row per key: total, above, a column per percentile, error, and were geometries mixed."""
    return (
        running(buckets, keys)
        .groupBy(*keys)
        .agg(
            f.first("total").alias("total"),
            f.sum(f.when(f.col("index") == ABOVE, f.col("count")).otherwise(0)).alias("above"),
            *(at(percentile).alias(name_of(percentile)) for percentile in ladder),
            f.first(f.expr(ERROR)).alias("error"),
            f.first("mixed").alias("mixed"),
        )
    )


def at(percentile: float) -> Column:
    """Null if there is nothing, or all is above."""
    share = f.lit(float(min(percentile, 100.0))) * f.col("total") / f.lit(100.0)
    wanted = f.greatest(f.floor(share + f.lit(0.5)), f.lit(1))
    is_reached = (f.col("index") != ABOVE) & (f.col("up_to") >= wanted)
    return f.min(f.when(is_reached, f.expr(HIGHEST_VALUE if percentile else LOWEST_VALUE)))
