"""The spool's Parquet files: one row per interval, queue and kind; schema version 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shmbroker.perf.spark.interval import NUMBERS, TEXTS, Intervals
from shmbroker.perf.spark.journal import Journal

VERSION = b"1"
VERSION_KEY = b"shmbroker.spool.version"
ROWS_AT_ONCE = 16_384

LISTS = {"indexes": pa.int32(), "counts": pa.int64()}
COLUMNS: dict[str, pa.DataType] = {
    **dict.fromkeys(TEXTS, pa.string()),
    **dict.fromkeys(NUMBERS, pa.int64()),
    "digits": pa.int32(),
    **{name: pa.list_(kind) for name, kind in LISTS.items()},
}


def read(stream: IO[bytes], journal: Journal) -> Iterator[pa.RecordBatch]:
    """All rows of one file but those that end it; a bad row group costs itself only."""
    try:
        file = pq.ParquetFile(stream, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        journal.problem(0, f"no readable Parquet file: {first_line(error)}")
        return
    if what := foreign(file):
        journal.problem(0, what)
        return
    row = 0
    for number in range(file.metadata.num_row_groups):
        size = file.metadata.row_group(number).num_rows
        done = 0
        try:
            for batch in file.iter_batches(ROWS_AT_ONCE, [number], columns=list(COLUMNS)):
                yield from taken(batch, row + done, journal)
                done += len(batch)
        except (pa.ArrowException, OSError) as error:
            what = f"{size - done:,} rows of row group {number} are damaged: {first_line(error)}"
            journal.problem(row + done, what)
        else:
            if done != size:
                journal.problem(row, f"row group {number} has {done:,} rows and says {size:,}")
        row += size
    if row != file.metadata.num_rows:
        what = f"its row groups have {row:,} rows, the file says {file.metadata.num_rows:,}"
        journal.problem(row, f"{what}: some may be lost")


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def foreign(file: pq.ParquetFile) -> str | None:
    """Why this is no spool that we know, if it is none."""
    version = (file.schema_arrow.metadata or {}).get(VERSION_KEY)
    if version is None:
        return "a Parquet file, but no spool of shmbroker"
    if version != VERSION:
        known, found = VERSION.decode(), version.decode(errors="replace")
        return f"version {found} of the spool; known is {known}: update shmbroker"
    schema = file.schema_arrow
    for name, kind in COLUMNS.items():
        if schema.get_field_index(name) < 0:
            return f"the column {name} is missing"
        if not fits(schema.field(name).type, kind):
            return f"the column {name} is {schema.field(name).type}, not {kind}"
    return None


def fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_string(wanted):
        return bool(pa.types.is_string(found) or pa.types.is_large_string(found))
    if pa.types.is_list(wanted):
        is_list = pa.types.is_list(found) or pa.types.is_large_list(found)
        return bool(is_list and pa.types.is_integer(found.value_type))
    return bool(pa.types.is_integer(found))


def taken(batch: pa.RecordBatch, at: int, journal: Journal) -> Iterator[pa.RecordBatch]:
    """Rows with holes are told of here; all else is the journal's to check."""
    columns = {name: batch.column(name).cast(kind) for name, kind in COLUMNS.items()}
    columns["build"] = columns["build"].fill_null("")
    journal.meet(columns["host"], columns["vhost"])
    offsets = np.arange(at, at + batch.num_rows)
    whole = np.ones(batch.num_rows, bool)
    for name in [*NUMBERS, "digits", *LISTS]:
        if columns[name].null_count:
            missing = np.asarray(columns[name].is_null())
            for row in np.flatnonzero(missing & whole):
                journal.problem(int(offsets[row]), f"it has no {name}")
            whole &= ~missing
    sizes = [np.asarray(pc.list_value_length(columns[name]).fill_null(0)) for name in LISTS]
    for row in np.flatnonzero((sizes[0] != sizes[1]) & whole):
        what = f"{sizes[0][row]:,} buckets and {sizes[1][row]:,} counts"
        journal.problem(int(offsets[row]), what)
    whole &= sizes[0] == sizes[1]
    if not whole.all():
        mask = pa.array(whole)
        columns = {name: column.filter(mask) for name, column in columns.items()}
        offsets, sizes = offsets[whole], [size[whole] for size in sizes]
    flat = {name: columns[name].flatten() for name in LISTS}
    for name, values in flat.items():
        if values.null_count:
            flat[name] = values.fill_null(-1)  # no bucket and no count: the checks will say so
    yield from journal.take(
        Intervals(
            offsets,
            {name: columns[name] for name in TEXTS},
            {name: np.asarray(columns[name]) for name in NUMBERS},
            np.asarray(columns["digits"]),
            np.concatenate([[0], np.cumsum(sizes[0], dtype=np.int64)]),
            np.asarray(flat["indexes"]),
            np.asarray(flat["counts"]),
        )
    )
