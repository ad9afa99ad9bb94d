"""Where a percentile is going: a line through its logarithm over time, by least squares."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from shmbroker.perf.spark.percentiles import name_of, percentiles

OWNER = ("vhost", "queue", "kind")


def trends(histograms: DataFrame, percentile: float = 99.0) -> DataFrame:
    """One row per queue and kind: change per hour (0.02 is 2 % more), and how well a line fits.

    `fit` is R squared: near 0 there is no trend to speak of, whatever the slope.
    """
    name = name_of(percentile)
    value = f.ln(f.greatest(f.col(name), f.lit(1)))
    hours = f.unix_seconds("window") / 3600.0
    over_time = percentiles(histograms, [*OWNER, "window"], [percentile])
    return (
        over_time.where(f"{name} IS NOT NULL")
        .groupBy(*OWNER)
        .agg(
            f.count("*").alias("windows"),
            f.min("window").alias("first"),
            f.max("window").alias("last"),
            (f.exp(f.regr_slope(value, hours)) - 1).alias("change_per_hour"),
            f.regr_r2(value, hours).alias("fit"),
            f.min_by(name, "window").alias("first_value"),
            f.max_by(name, "window").alias("last_value"),
        )
        .withColumn("percentile", f.lit(percentile))
        .orderBy(f.desc("change_per_hour"))
    )
