"""What is kept: Parquet in one folder, read and written by any Spark.

    tables.json              who made it (`batch` or `stream`) and how long its windows are
    histograms/batch=7/late=false/date=2026-11-21/...    merged histograms (`histograms.py`)
    files/batch=7/, problems/batch=7/                    what was read, and what was wrong with it
    percentiles/date=.../, trends/, regressions/, ...    results, each replaced by its next run

A batch counts when it has its problems, which are written last; so a run that was killed leaves
nothing that counts, and the next one replaces it.  Of a `batch` table only the newest counts, as it
is about the whole spool; of a `stream` all do, and each is about other files.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from shmbroker.perf.spark.spool import opened

HISTOGRAMS = (
    "host STRING, vhost STRING, queue STRING, kind STRING, build STRING, window TIMESTAMP, "
    "lowest BIGINT, highest BIGINT, digits INT, total BIGINT, above BIGINT, "
    "indexes ARRAY<INT>, counts ARRAY<BIGINT>, batch BIGINT, late BOOLEAN, date DATE"
)
FILES = pa.schema(
    [(name, pa.string()) for name in ("file", "host", "vhost")]
    + [(name, pa.int64()) for name in ("intervals", "first", "last", "messages", "above")]
)
PROBLEMS = pa.schema(
    {
        "file": pa.string(), "offset": pa.int64(), "problem": pa.string(),
        "host": pa.string(), "vhost": pa.string(), "left_out": pa.int64(),
    }
)  # fmt: skip


def part(table: str, batch: int) -> str:
    return f"{table}/batch={batch}/part.parquet"


def ddl(schema: pa.Schema) -> str:
    """As Spark writes it, with the partition."""
    names = {pa.string(): "STRING", pa.int64(): "BIGINT"}
    return ", ".join([*(f"{field.name} {names[field.type]}" for field in schema), "batch BIGINT"])


class NoTables(Exception):
    """That folder has no tables of ours, or not such."""


@dataclass(frozen=True)
class About:
    """What tables.json says."""

    made_by: str
    window_seconds: int
    version: int = 1


class Tables:
    """A folder of tables."""

    def __init__(self, spark: SparkSession, place: str) -> None:
        self.spark = spark
        self.place = place.rstrip("/")
        self._system, self._path = opened(self.place)

    def create(self, about: About) -> None:
        """Begin, or go on: as it was begun."""
        if self._exists("tables.json"):
            found = self.about
            if found != about:
                raise NoTables(
                    f"{self.place} was made by {found.made_by!r} with windows of "
                    f"{found.window_seconds} s; it cannot be gone on with by {about.made_by!r} "
                    f"with {about.window_seconds} s: take another folder"
                )
            return
        self._system.create_dir(self._path, recursive=True)
        self.write_json("tables.json", asdict(about))

    @property
    def about(self) -> About:
        if not self._exists("tables.json"):
            raise NoTables(f"{self.place}: there are no tables; make some: shmbroker latency merge")
        found = About(**self.read_json("tables.json"))
        if found.version != About.version:
            raise NoTables(f"{self.place} is of version {found.version}: update shmbroker")
        return found

    def batches(self) -> list[int]:
        """Those that count."""
        complete = [n for n in self._numbers("histograms") if self._exists(part("problems", n))]
        return complete if self.about.made_by == "stream" else complete[-1:]

    def next_batch(self) -> int:
        return max(self._numbers("histograms"), default=-1) + 1

    def drop_before(self, batch: int) -> None:
        """What a newer batch has replaced."""
        for table in ("problems", "files", "histograms"):
            for number in self._numbers(table):
                if number < batch:
                    self._system.delete_dir(f"{self._path}/{table}/batch={number}")

    @property
    def histograms(self) -> DataFrame:
        """Merged histograms by host, vhost, queue, kind, build and window."""
        return self._read("histograms", HISTOGRAMS).where(~f.col("late")).drop("late", "batch")

    @property
    def late(self) -> DataFrame:
        """What came after its window was closed."""
        return self._read("histograms", HISTOGRAMS).where("late").drop("late", "batch")

    @property
    def files(self) -> DataFrame:
        return self._read("files", ddl(FILES))

    @property
    def problems(self) -> DataFrame:
        return self._read("problems", ddl(PROBLEMS))

    def write(self, table: str, batch: int, frame: DataFrame, *partitions: str) -> None:
        """A batch's part of a table, in place of what an earlier try may have left."""
        path = f"{self.place}/{table}/batch={batch}"
        frame.write.mode("overwrite").partitionBy(*partitions).parquet(path)

    def write_rows(self, table: str, batch: int, schema: pa.Schema, rows: list[Any]) -> None:
        """The same for a few rows at hand, without Spark; complete when it has its name."""
        columns = list(zip(*rows, strict=True)) or [() for _ in schema]
        arrays = [pa.array(c, kind) for c, kind in zip(columns, schema.types, strict=True)]
        found = pa.Table.from_arrays(arrays, schema=schema)
        out = pa.BufferOutputStream()
        pq.write_table(found, out)
        self._write(part(table, batch), out.getvalue())

    def write_result(self, name: str, frame: DataFrame) -> DataFrame:
        """In place of the former one; what was written."""
        path = f"{self.place}/{name}"
        dated = "window" in frame.columns
        if dated:
            frame = frame.withColumn("date", f.to_date("window"))
        frame.write.mode("overwrite").partitionBy(*(["date"] if dated else [])).parquet(path)
        return self.spark.read.schema(frame.schema).parquet(path)

    def write_json(self, name: str, value: Any) -> None:
        self._write(name, json.dumps(value).encode())

    def read_json(self, name: str) -> Any:
        with self._system.open_input_file(f"{self._path}/{name}") as stream:
            return json.loads(stream.read())

    def _write(self, name: str, content: Any) -> None:
        folder, _, file = f"{self._path}/{name}".rpartition("/")
        self._system.create_dir(folder, recursive=True)
        with self._system.open_output_stream(f"{folder}/_{file}") as stream:
            stream.write(content)
        self._system.move(f"{folder}/_{file}", f"{folder}/{file}")

    def _read(self, table: str, schema: str) -> DataFrame:
        paths = [f"{self.place}/{table}/batch={number}" for number in self.batches()]
        if not paths:
            return self.spark.createDataFrame([], schema)
        reading = self.spark.read.schema(schema).option("basePath", f"{self.place}/{table}")
        return reading.parquet(*paths)

    def checkpoint(self) -> str:
        """Where Spark keeps how far a stream is.

        What is left of a first batch that was killed before it began is removed: Spark would take
        it for another stream's.
        """
        offsets = f"{self._path}/checkpoint/offsets"
        selector = fs.FileSelector(offsets, allow_not_found=True)
        names = [info.base_name for info in self._system.get_file_info(selector)]
        if names and not any(name.isdecimal() for name in names):
            self._system.delete_dir(offsets)
        return f"{self.place}/checkpoint"

    def _exists(self, name: str) -> bool:
        found = self._system.get_file_info(f"{self._path}/{name}")
        return bool(found.type != fs.FileType.NotFound)

    def _numbers(self, table: str) -> list[int]:
        selector = fs.FileSelector(f"{self._path}/{table}", allow_not_found=True)
        names = [info.base_name for info in self._system.get_file_info(selector)]
        return sorted(int(name[6:]) for name in names if name.startswith("batch="))
