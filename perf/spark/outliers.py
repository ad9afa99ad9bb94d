"""Hosts that are slower than their fellows: a robust score, so that they do not hide themselves.

The logarithm of a host's percentile is compared with the median of all hosts of that queue, in
units of the median deviation (MAD): `score` is what standard deviations would be if most were
normal.  A deviation below what the buckets tell apart counts as that.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from shmbroker.perf.spark.percentiles import name_of, percentiles

OWNER = ("vhost", "queue", "kind")
HOSTS_MIN = 5
NORMAL = 1.4826
"""Standard deviations per MAD."""


def outliers(
    histograms: DataFrame, percentile: float = 99.0, score: float = 5.0, ratio: float = 1.2
) -> DataFrame:
    """Hosts with at least that score and that many times the median; worst first."""
    name = name_of(percentile)
    hosts = (
        percentiles(histograms, [*OWNER, "host"], [percentile])
        .where(f"{name} IS NOT NULL")
        .select(*OWNER, "host", "total", "error", f.col(name).alias("value"))
        .withColumn("log", f.ln(f.greatest(f.col("value"), f.lit(1))))
    )
    middle = hosts.groupBy(*OWNER).agg(f.median("log").alias("middle"), f.count("*").alias("hosts"))
    placed = hosts.join(middle, [*OWNER]).where(f.col("hosts") >= HOSTS_MIN)
    spread = placed.groupBy(*OWNER).agg(
        f.median(f.abs(f.col("log") - f.col("middle"))).alias("mad")
    )
    away = f.col("log") - f.col("middle")
    return (
        placed.join(spread, [*OWNER])
        .withColumn("score", away / (NORMAL * f.greatest("mad", f.col("error") / 2)))
        .withColumn("ratio", f.exp(away))
        .withColumn("percentile", f.lit(percentile))
        .where((f.col("score") >= score) & (f.col("ratio") >= ratio))
        .select(*OWNER, "host", "percentile", "value", "ratio", "score", "total", "hosts")
        .orderBy(f.desc("score"))
    )
