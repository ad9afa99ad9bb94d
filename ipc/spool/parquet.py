"""Logs of the spool as Parquet: a row an interval, queue and kind (docs/latency.md has the schema).

Needs pyarrow, which a plain client does not.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from shmbroker.ipc.base.errors import Damaged
from shmbroker.ipc.spool import hlog

VERSION: Final = "1"
VERSION_KEY: Final = "shmbroker.spool.version"
ROWS: Final = 10_000
"""So many at a time are in memory, and in a row group."""

SCHEMA: Final = pa.schema(
    [
        ("host", pa.string()),
        ("vhost", pa.string()),
        ("queue", pa.string()),
        ("kind", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("build", pa.string()),
        ("lowest", pa.int64()),
        ("highest", pa.int64()),
        ("digits", pa.int32()),
        ("total", pa.int64()),
        ("overflow", pa.int64()),
        ("indexes", pa.list_(pa.int32())),
        ("counts", pa.list_(pa.int64())),
    ],
    metadata={VERSION_KEY: VERSION},
)


def row(origin: hlog.Origin, interval: hlog.Interval) -> dict[str, Any]:
    histogram = interval.histogram
    return {
        "host": origin.host,
        "vhost": origin.vhost,
        "queue": interval.queue,
        "kind": interval.kind,
        "start": interval.start,
        "end": interval.end,
        "build": origin.build,
        "lowest": histogram.range.lowest,
        "highest": histogram.range.highest,
        "digits": histogram.range.digits,
        "total": histogram.total,
        "overflow": histogram.overflow,
        "indexes": histogram.indexes.tolist(),
        "counts": histogram.counts.tolist(),
    }


def write(log: Path, target: Path) -> int:
    """Write what this log holds: how many rows.  On disk when it returns; Damaged for a bad log."""
    written = 0
    rows: list[dict[str, Any]] = []
    with (
        log.open(encoding="utf-8", errors="replace", newline="\n") as lines,
        pq.ParquetWriter(target, SCHEMA, compression="zstd") as writer,
    ):
        found = hlog.read(lines)
        origin = next(found, None)
        if not isinstance(origin, hlog.Origin):
            raise Damaged("an empty log")
        for each in found:
            assert isinstance(each, hlog.Interval)
            rows.append(row(origin, each))
            if len(rows) == ROWS:
                writer.write_table(pa.Table.from_pylist(rows, SCHEMA))
                written += len(rows)
                rows.clear()
        writer.write_table(pa.Table.from_pylist(rows, SCHEMA))
        written += len(rows)
    with target.open("rb") as file:
        os.fsync(file.fileno())
    return written
