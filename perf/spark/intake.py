"""From a spool to the table of histograms: all of it at once, or what is new as it comes.

Both do the same with the rows that they are given, so they come to the same.  A stream has a
watermark: the latest end of an interval in earlier batches, less the delay that one allows.
Windows that it has passed are closed; what still comes for them is set aside (`Tables.late`) and
counted, so that what has been reported of a closed window stays.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from shmbroker.perf.spark.histograms import intervals, messages_of
from shmbroker.perf.spark.interval import FILE, INTERVAL, PROBLEM, SEVERAL, SLACK_NS
from shmbroker.perf.spark.spool import files
from shmbroker.perf.spark.tables import FILES, PROBLEMS, About, Tables

NOTE = ("sort", "file", "offset", "problem", "host", "vhost", "start", "end", "total", "overflow")

WORKER_IS_LATE = "Python worker failed to connect back"
ATTEMPTS = 5


@dataclass(frozen=True)
class Taken:
    """What a batch was about."""

    batch: int
    files: int
    intervals: int
    messages: int
    """By `take`, one with times of two kinds counts twice."""
    problems: int
    left_out: int


def merge(spark: SparkSession, spool: str, place: str, window_seconds: int) -> Taken:
    """The whole spool; it replaces what an earlier merge of it has left."""
    files(spool)  # or it says at once what is wrong with that place
    tables = Tables(spark, place)
    tables.create(About("batch", window_seconds))
    reading = spark.read.format("shmbroker").option("windowSeconds", window_seconds)
    batch = tables.next_batch()
    taken = take(tables, batch, reading.load(spool))
    tables.drop_before(batch)
    return replace(taken, messages=messages_of(tables.histograms))


def follow(
    spark: SparkSession, spool: str, place: str, window_seconds: int, delay_seconds: float,
    every: str | None = None, files_per_batch: int = 1000,
) -> None:  # fmt: skip
    """What is new, batch by batch; `every` "10 seconds", or None to end when nothing is new.

    Stopped or killed anywhere, it goes on where it was: Spark's checkpoint and the ledger of
    files are in the tables' folder, and a batch that is repeated has the same files and replaces
    what it wrote.  Spark gives a Python worker ten seconds to connect, and no option changes that:
    where a machine is too busy for it, we try again, a few times.
    """
    for attempts_left in range(ATTEMPTS - 1, -1, -1):
        query = _begin(spark, spool, place, window_seconds, delay_seconds, every, files_per_batch)
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if WORKER_IS_LATE not in str(error) or not attempts_left:
                raise
        else:
            return


def _begin(
    spark: SparkSession, spool: str, place: str, window_seconds: int, delay_seconds: float,
    every: str | None, files_per_batch: int,
) -> StreamingQuery:  # fmt: skip
    files(spool)
    tables = Tables(spark, place)
    tables.create(About("stream", window_seconds))
    reading = (
        spark.readStream.format("shmbroker")
        .option("windowSeconds", window_seconds)
        .option("filesPerBatch", files_per_batch)
        .option("ledger", f"{tables.place}/ledger")
    )

    def on_batch(rows: DataFrame, batch: int) -> None:
        take(tables, batch, rows, delay_ns=int(delay_seconds * 1e9))

    writing = (
        reading.load(spool)
        .writeStream.foreachBatch(on_batch)
        .option("checkpointLocation", tables.checkpoint())
    )
    writing = writing.trigger(processingTime=every) if every else writing.trigger(availableNow=True)
    return writing.start()


def take(tables: Tables, batch: int, rows: DataFrame, delay_ns: int | None = None) -> Taken:
    """Rows of a spool into the tables, as one batch."""
    window_ns = tables.about.window_seconds * 10**9
    # one pass: what is no interval is observed as it goes by
    notes = Observation()
    is_note = f.col("sort") != INTERVAL
    seen = rows.observe(notes, f.collect_list(f.when(is_note, f.struct(*NOTE))).alias("notes"))
    closed = watermark(tables, batch, delay_ns)
    late = f.expr(f"unix_micros(window) + {window_ns // 1000}L <= {closed // 1000}L")
    found = intervals(seen, window_ns).withColumns({"late": late, "date": f.to_date("window")})
    tables.write("histograms", batch, found, "late", "date")
    noted = sorted(set(observed(notes, rows)), key=lambda note: (note.file, note.offset or 0))
    read = [note for note in noted if note.sort == FILE]
    problems = [*(n for n in noted if n.sort == PROBLEM), *overlapping(read)]
    last = max((file.end for file in read if file.end is not None), default=0)
    tables.write_json(f"progress/{batch}.json", min(last, time.time_ns()))
    tables.write_rows("files", batch, FILES, [*map(file_row, read)])
    # last: with it the batch is complete
    tables.write_rows("problems", batch, PROBLEMS, [*map(problem_row, problems)])
    return Taken(
        batch, len(read), sum(file.offset for file in read), sum(file.total for file in read),
        len(problems), sum(problem.total for problem in problems),
    )  # fmt: skip


def observed(notes: Observation, rows: DataFrame) -> list[Row]:
    """What went by; if Spark found that there is no interval at all, it has forgotten that."""
    try:
        return list(notes.get["notes"])
    except Py4JJavaError:
        return rows.where(f.col("sort") != INTERVAL).select(*NOTE).collect()


def watermark(tables: Tables, batch: int, delay_ns: int | None) -> int:
    """Up to when all windows are closed for this batch, in nanoseconds: by earlier ones."""
    if delay_ns is None:
        return 0
    before = [tables.read_json(f"progress/{n}.json") for n in tables.batches() if n < batch]
    return max(0, max(before, default=0) - delay_ns)


def overlapping(read: list[Row]) -> list[Row]:
    """Files of one host and vhost that are about the same time; that is told, and counted."""
    known = [file for file in read if file.start is not None and file.host != SEVERAL]
    found: list[Row] = []
    ends: dict[tuple[str, str], Row] = {}
    for each in sorted(known, key=lambda n: n.start):
        before = ends.setdefault((each.host, each.vhost), each)  # the one that ends last so far
        if before is not each and each.start < before.end - SLACK_NS:
            over = (min(before.end, each.end) - each.start) / 1e9
            what = f"overlaps {before.file} by {over:,.3f} s; both are counted"
            found.append(Row(**each.asDict() | {"offset": 0, "problem": what, "total": 0}))
        if each.end > before.end:
            ends[each.host, each.vhost] = each
    return found


def file_row(note: Row) -> tuple[Any, ...]:
    return (note.file, note.host, note.vhost, note.offset, note.start, note.end, note.total,
            note.overflow)  # fmt: skip


def problem_row(note: Row) -> tuple[Any, ...]:
    return note.file, note.offset, note.problem, note.host, note.vhost, note.total
