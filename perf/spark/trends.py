"""Where a percentile is going: a line through its logarithm over time, by least squares."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from shmbroker.perf.spark.percentiles import name_of, percentiles

OWNER = ("vhost", "queue", "kind")
WINDOWS_MIN = 10
SECONDS_MIN = 300
"""A line through less says nothing about an hour."""


def trends(histograms: DataFrame, percentile: float = 99.0) -> DataFrame:
    """One row per queue and kind: change per hour (0.02 is 2 % more), and how well a line fits.

    `fit` is R squared: near 0 there is no trend to speak of, whatever the slope.  Where there is
    too little to tell, both are null, and `why` says what is missing.
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
        .withColumn("why", why())
        .withColumns({name: when_known(name) for name in ("change_per_hour", "fit")})
        .orderBy(f.desc_nulls_last("change_per_hour"))
    )


def why() -> Column:
    """Why there is no trend; null if there is one."""
    seconds = f.unix_seconds("last") - f.unix_seconds("first")
    few = f.concat(f.lit("only "), f.col("windows"), f.lit(f" of at least {WINDOWS_MIN} windows"))
    short = f.concat(f.lit("only "), seconds, f.lit(f" of at least {SECONDS_MIN} s"))
    return f.when(f.col("windows") < WINDOWS_MIN, few).when(seconds < SECONDS_MIN, short)


def when_known(name: str) -> Column:
    return f.when(f.col("why").isNull(), f.col(name))
