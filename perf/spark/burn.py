"""How fast an objective's budget is used up: "99.9 % of the messages within 1 ms".

A message counts as above the bound if its whole bucket is; those in the bucket that the bound
is in may be on either side, and are told as `uncertain`.  Values above the highest are above.
`burn` is the share above, divided by the share that the objective allows: at 1 the budget is
just used up.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from shmbroker.perf.spark.buckets import ABOVE, HIGHEST_VALUE, LOWEST_VALUE, merged

KEYS = ("vhost", "queue", "kind", "window")


def burn(
    histograms: DataFrame, bound_ns: int, objective: float, keys: Sequence[str] = KEYS
) -> DataFrame:
    """One row per key; objective in percent."""
    is_inside = f.col("index") != ABOVE
    is_above = ~is_inside | (f.expr(LOWEST_VALUE) > bound_ns)
    is_cut = is_inside & ~is_above & (f.expr(HIGHEST_VALUE) > bound_ns)

    def count(condition: Column) -> Column:
        return f.sum(f.when(condition, f.col("count")).otherwise(0))

    allowed = 1 - objective / 100
    return (
        merged(histograms, keys)
        .groupBy(*keys)
        .agg(
            f.sum("count").alias("messages"),
            count(is_above).alias("above"),
            count(is_cut).alias("uncertain"),
        )
        .withColumn("share", f.col("above") / f.col("messages"))
        .withColumn("burn", f.col("share") / f.lit(allowed))
        .withColumn("bound_ns", f.lit(bound_ns))
        .withColumn("objective", f.lit(objective))
    )
