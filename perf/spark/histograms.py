"""Merging, exactly: whole histograms of one key and geometry, added up by Spark SQL.

A table of histograms has one row per merged histogram: its keys, its geometry, `indexes` and
`counts` of the buckets that are not empty, ascending, their `total`, and `above`: how many values
are above the highest, in no bucket.  Adding rows is associative, so a table may have several of one
key (of several files, or batches of a stream), and minutes are merged into days in the same way.

Most keys have one row, as who reads a spool combines what it has at hand: so rows stay whole where
they can, and are taken apart into buckets (`buckets.py`) only where many come together.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from shmbroker.perf.spark.buckets import ABOVE, GEOMETRY, merged
from shmbroker.perf.spark.geometry import half_sql, unit_sql
from shmbroker.perf.spark.interval import INTERVAL

KEYS = ("host", "vhost", "queue", "kind", "build", "window")
MESSAGES = "total + above"

TOGETHER_MAX = 64
"""Rows of one key are brought together as they are; of more it is cheaper to send sums."""


def intervals(spool: DataFrame, window_ns: int) -> DataFrame:
    """A spool as a table of histograms, by host, vhost, queue, kind, build and window.

    An interval belongs to the window in which it begins.  A key has a row for each file that it
    is in: nothing has to be moved for that.
    """
    return spool.where((f.col("sort") == INTERVAL) & f.expr("total > 0 OR overflow > 0")).select(
        *KEYS[:-1],
        f.expr(f"timestamp_micros((start - pmod(start, {window_ns}L)) div 1000)").alias("window"),
        *GEOMETRY,
        "total",
        f.col("overflow").alias("above"),
        "indexes",
        "counts",
    )


def messages_of(histograms: DataFrame) -> int:
    """How many messages were recorded: one that has a time of each kind is one message."""
    kinds = histograms.groupBy("host", "vhost", "queue", "kind").agg(
        f.sum(f.expr(MESSAGES)).alias("messages")
    )
    queues = kinds.groupBy("host", "vhost", "queue").agg(f.max("messages").alias("messages"))
    found = queues.agg(f.sum("messages")).first()
    return int(found[0] or 0) if found else 0


def merged_intervals(spool: DataFrame, window_ns: int) -> DataFrame:
    """The same with one row per key and geometry."""
    return added(intervals(spool, window_ns), [*KEYS, *GEOMETRY])


def added(histograms: DataFrame, keys: Sequence[str]) -> DataFrame:
    """One row per key; all of a key are in one geometry."""
    # first to where their equals are: there is nearly nothing to add up before
    together = (
        histograms.repartition(*keys)
        .groupBy(*keys)
        .agg(
            f.sum("total").alias("total"),
            f.sum("above").alias("above"),
            f.collect_list(f.struct("indexes", "counts")).alias("parts"),
        )
    )
    return together.withColumn("sums", f.expr(SUMS)).select(
        *keys,
        "total",
        "above",
        f.expr("coalesce(sums.key, parts[0].indexes)").alias("indexes"),
        f.expr("coalesce(sums.value, parts[0].counts)").alias("counts"),
    )


SUMS = """
    CASE WHEN size(parts) > 1 THEN sort_array(map_entries(aggregate(
        slice(parts, 2, size(parts)),
        map_from_arrays(parts[0].indexes, parts[0].counts),
        (sums, part) -> map_zip_with(
            sums,
            map_from_arrays(part.indexes, part.counts),
            (index, one, other) -> coalesce(one, 0L) + coalesce(other, 0L)
        )
    ))) END
"""
"""Entries of index and count; null if there is one part, which stays as it is."""


def by_keys(histograms: DataFrame, keys: Sequence[str]) -> DataFrame:
    """One row per key, by fewer keys, in its one geometry as `buckets.merged` has it."""
    own = histograms.withColumns(
        {"unit": f.expr(unit_sql("lowest")), "half": f.expr(half_sql("digits"))}
    )
    differ = f.expr("min(unit) != max(unit) OR min(half) != max(half)")
    each = own.groupBy(*keys).agg(f.count("*").alias("rows"), differ.alias("mixed"))
    found = each.agg(f.max("rows").alias("most"), f.bool_or("mixed").alias("mixed")).first()
    most, mixed = found if found and found.most else (1, False)
    columns = [*keys, "unit", "half", "total", "above", "indexes", "counts"]
    if mixed or most > TOGETHER_MAX:
        return gathered(merged(histograms, keys), keys)
    whole = own.select(*columns) if most == 1 else added(own, [*keys, "unit", "half"])
    return whole.withColumn("mixed", f.lit(False))


def gathered(buckets: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Buckets as histograms again."""
    is_inside = f.col("index") != ABOVE
    return (
        buckets.groupBy(*keys, "unit", "half", "mixed")
        .agg(
            f.sum(f.when(is_inside, f.col("count")).otherwise(0)).alias("total"),
            f.sum(f.when(is_inside, 0).otherwise(f.col("count"))).alias("above"),
            f.sort_array(f.collect_list(f.when(is_inside, f.struct("index", "count")))).alias(
                "all"
            ),
        )
        .withColumns({"indexes": f.col("all.index"), "counts": f.col("all.count")})
        .drop("all")
    )
