"""Histograms taken apart into buckets, and equal buckets added up by Spark SQL.

A table of buckets has one row per bucket of a merged histogram: its keys, `index` and `count`.
Index -1 holds the values above the highest, which are in no bucket.  Who can keeps histograms whole
(`histograms.py`): there are some hundred buckets of each.
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

ABOVE = -1
GEOMETRY = ("lowest", "highest", "digits")


def apart(histograms: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Their buckets as they are, not yet added up."""
    has_above = f.col("above") > 0
    indexes = f.when(has_above, f.array_append("indexes", f.lit(ABOVE))).otherwise(f.col("indexes"))
    counts = f.when(has_above, f.array_append("counts", f.col("above"))).otherwise(f.col("counts"))
    whole = histograms.select(*keys, *GEOMETRY, indexes.alias("indexes"), counts.alias("counts"))
    placed = whole.select(
        *keys, *GEOMETRY, "counts", f.posexplode("indexes").alias("position", "index")
    )
    return placed.select(*keys, *GEOMETRY, "index", f.expr("counts[position]").alias("count"))


def merged(
    histograms: DataFrame, keys: Sequence[str], alike: Sequence[str] | None = None
) -> DataFrame:
    """Buckets by fewer keys, and each key's in one geometry: the coarsest of those it has.

    `alike` are the keys that share a geometry, if not each has its own.

    `unit` and `half` say which that is (`geometry.py`); `mixed` whether it had several, of which
    the finer ones were re-bucketed.  Values differ from their bucket by at most `error` of theirs.
    """
    buckets = apart(histograms, keys)
    known = histograms.select(*GEOMETRY).distinct().limit(2).collect()
    if len(known) < 2:  # as it nearly always is: nothing to compare, nothing to move
        geometry = Geometry(*known[0]) if known else Geometry(1, 2, 1)
        return (
            buckets.groupBy(*keys, "index")
            .agg(f.sum("count").alias("count"))
            .withColumns({"unit": f.lit(geometry.unit), "half": f.lit(geometry.half)})
            .withColumn("mixed", f.lit(False))
        )
    whole = Window.partitionBy(*(keys if alike is None else alike))
    moved = (
        buckets.groupBy(*keys, *GEOMETRY, "index")
        .agg(f.sum("count").alias("count"))
        .withColumn("own_unit", f.expr(unit_sql("lowest")))
        .withColumn("own_half", f.expr(half_sql("digits")))
        .withColumn("unit", f.max("own_unit").over(whole))
        .withColumn("half", f.min("own_half").over(whole))
        .withColumn("mixed", is_mixed(whole))
        .withColumn("index", f.expr(index_in_coarsest()))
    )
    return moved.groupBy(*keys, "unit", "half", "mixed", "index").agg(f.sum("count").alias("count"))


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
