"""Merging, exactly: histograms taken apart into buckets, and equal buckets added up by Spark SQL.

A table of buckets has one row per bucket of a merged histogram: its keys, its geometry, `index`
and `count`.  Index -1 holds the values above the highest, which are in no bucket.  Adding such rows
is associative, so what was merged by minute is merged by day in the same way, from the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.window import WindowSpec

from shmbroker.perf.spark.geometry import (
    Geometry,
    half_sql,
    highest_value_sql,
    index_sql,
    lowest_value_sql,
    unit_sql,
)
from shmbroker.perf.spark.interval import INTERVAL

ABOVE = -1
KEYS = ("host", "vhost", "queue", "kind", "build", "window")
GEOMETRY = ("lowest", "highest", "digits")


def merged_intervals(spool: DataFrame, window_ns: int) -> DataFrame:
    """A spool as a table of buckets, by host, vhost, queue, kind, build and window.

    An interval belongs to the window in which it begins.
    """
    has_above = f.col("overflow") > 0
    whole = spool.where(f.col("sort") == INTERVAL).select(
        *KEYS[:-1],
        f.expr(f"timestamp_micros((start - pmod(start, {window_ns}L)) div 1000)").alias("window"),
        *GEOMETRY,
        f.when(has_above, f.array_append("indexes", f.lit(ABOVE)))
        .otherwise(f.col("indexes"))
        .alias("indexes"),
        f.when(has_above, f.array_append("counts", f.col("overflow")))
        .otherwise(f.col("counts"))
        .alias("counts"),
    )
    # arrays are small, and what they have as rows is not: so they move to where their equals are
    together = whole.repartition(*KEYS, *GEOMETRY)
    apart = together.select(
        *KEYS, *GEOMETRY, "counts", f.posexplode("indexes").alias("position", "index")
    )
    counted = apart.select(*KEYS, *GEOMETRY, "index", f.expr("counts[position]").alias("count"))
    return added(counted, KEYS)


def added(buckets: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Equal buckets of equal geometry added up."""
    return buckets.groupBy(*keys, *GEOMETRY, "index").agg(f.sum("count").alias("count"))


def merged(
    buckets: DataFrame, keys: Sequence[str], alike: Sequence[str] | None = None
) -> DataFrame:
    """By fewer keys, and each key's in one geometry: the coarsest of those it has.

    `alike` are the keys that share a geometry, if not each has its own.

    `unit` and `half` say which that is (`geometry.py`); `mixed` whether it had several, of which
    the finer ones were re-bucketed.  Values differ from their bucket by at most `error` of theirs.
    """
    known = buckets.select(*GEOMETRY).distinct().limit(2).collect()
    if len(known) < 2:  # as it nearly always is: nothing to compare, nothing to move
        geometry = Geometry(*known[0]) if known else Geometry(1, 2, 1)
        return (
            buckets.groupBy(*keys, "index")
            .agg(f.sum("count").alias("count"))
            .withColumns({"unit": f.lit(geometry.unit), "half": f.lit(geometry.half)})
            .withColumn("mixed", f.lit(False))
        )
    whole = Window.partitionBy(*(keys if alike is None else alike))
    apart = (
        added(buckets, keys)
        .withColumn("own_unit", f.expr(unit_sql("lowest")))
        .withColumn("own_half", f.expr(half_sql("digits")))
        .withColumn("unit", f.max("own_unit").over(whole))
        .withColumn("half", f.min("own_half").over(whole))
        .withColumn("mixed", is_mixed(whole))
        .withColumn("index", f.expr(index_in_coarsest()))
    )
    return apart.groupBy(*keys, "unit", "half", "mixed", "index").agg(f.sum("count").alias("count"))


def is_mixed(whole: WindowSpec) -> Column:
    def differs(name: str) -> Column:
        return f.min(name).over(whole) != f.max(name).over(whole)

    return differs("own_unit") | differs("own_half")


def index_in_coarsest() -> str:
    value = lowest_value_sql("index", "own_unit", "own_half")
    moved = index_sql(value, "unit", "half")
    stays = f"own_unit = unit AND own_half = half OR index = {ABOVE}"
    return f"CASE WHEN {stays} THEN index ELSE {moved} END"


LOWEST_VALUE = lowest_value_sql("index", "unit", "half")
HIGHEST_VALUE = highest_value_sql("index", "unit", "half")
ERROR = "1 / shiftleft(1L, half)"
