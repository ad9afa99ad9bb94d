"""Percentiles of merged histograms: the same values as the `hdrhistogram` package has.

The value at a percentile p is the highest of the first bucket up to which there are at least
int(p * total / 100 + 0.5) values, and at least one; at 0 it is that bucket's lowest.  What is
above the highest value is in no bucket, so it has no percentile: it is counted beside, `above`.

Which bucket that is, is looked up by numpy in a running sum over a whole batch of histograms.
SQL's `aggregate` takes as long and is a page of text; a window over buckets took far longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from shmbroker.perf.spark.buckets import ERROR
from shmbroker.perf.spark.geometry import highest_value_sql, lowest_value_sql
from shmbroker.perf.spark.histograms import by_keys

LADDER = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
SUM_MAX = 1 << 62
"""A running sum over several histograms must not come near the end of 64 bits."""


def name_of(percentile: float) -> str:
    """p50, p99_9, max."""
    return "max" if percentile == 100 else f"p{percentile:g}".replace(".", "_")


def label_of(percentile: float) -> str:
    """p50, p99.9, max: for people."""
    return "max" if percentile == 100 else f"p{percentile:g}"


def percentiles(
    histograms: DataFrame, keys: Sequence[str], ladder: Sequence[float] = LADDER
) -> DataFrame:
    """One row per key: total, above, a column per percentile, error, and were geometries mixed."""
    whole = by_keys(histograms, keys)
    kept = [field for field in whole.schema if field.name not in ("indexes", "counts")]
    names = [name_of(percentile) for percentile in ladder]
    found = t.StructType([*kept, *(t.StructField(name, t.IntegerType()) for name in names)])

    def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [batch.column(field.name) for field in kept]
            columns += places(batch, ladder)
            yield pa.RecordBatch.from_arrays(columns, found.names)

    return whole.mapInArrow(place, found).select(
        *keys,
        "total",
        "above",
        *(
            f.expr((highest_value_sql if percentile else lowest_value_sql)(name, "unit", "half"))
            .alias(name)
            for percentile, name in zip(ladder, names, strict=True)
        ),
        f.expr(ERROR).alias("error"),
        "mixed",
    )  # fmt: skip


def places(batch: pa.RecordBatch, ladder: Sequence[float]) -> list[pa.Array]:
    """Index of each percentile's bucket, by row; null if there is nothing, or all is above."""
    totals = np.asarray(batch.column("total"))
    if float(totals.sum(dtype=float)) > SUM_MAX and len(totals) > 1:
        middle = len(totals) // 2
        halves = places(batch.slice(0, middle), ladder), places(batch.slice(middle), ladder)
        return [pa.concat_arrays(both) for both in zip(*halves, strict=True)]
    indexes = np.asarray(batch.column("indexes").flatten())
    up_to = np.cumsum(np.asarray(batch.column("counts").flatten()))
    before = np.cumsum(totals) - totals
    found = []
    for percentile in ladder:
        share = min(percentile, 100.0) * totals / 100.0
        wanted = np.maximum(np.floor(share + 0.5).astype(np.int64), 1)
        at = np.searchsorted(up_to, before + np.minimum(wanted, totals))
        is_empty = totals == 0
        at[is_empty] = 0
        values = indexes[at] if len(indexes) else np.zeros(len(at), np.int32)
        found.append(pa.array(values, pa.int32(), mask=is_empty))
    return found
