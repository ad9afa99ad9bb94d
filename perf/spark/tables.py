"""What is kept: Parquet in one folder, read and written by any Spark.

    tables.json              who made it (`batch` or `stream`) and how long its windows are
    buckets/batch=7/late=false/date=2026-11-21/...       merged histograms (`buckets.py`)
    files/batch=7/, problems/batch=7/                    what was read, and what was wrong with it
    percentiles/date=.../, trends/, regressions/, ...    results, each replaced by its next run

A batch counts when it has its _SUCCESS, which is written last; so a run that was killed leaves
nothing that counts, and the next one replaces it.  Of a `batch` table only the newest counts, as it
is about the whole spool; of a `stream` all do, and each is about other files.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from shmbroker.perf.spark.spool import opened

BUCKETS = (
    "host STRING, vhost STRING, queue STRING, kind STRING, build STRING, window TIMESTAMP, "
    "lowest BIGINT, highest BIGINT, digits INT, index INT, count BIGINT, "
    "batch BIGINT, late BOOLEAN, date DATE"
)
FILES = (
    "file STRING, host STRING, vhost STRING, intervals BIGINT, first BIGINT, last BIGINT, "
    "messages BIGINT, above BIGINT, batch BIGINT"
)
PROBLEMS = (
    "file STRING, offset BIGINT, problem STRING, host STRING, vhost STRING, left_out BIGINT, "
    "batch BIGINT"
)


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
        complete = [n for n in self._numbers("buckets") if self._is_complete("problems", n)]
        return complete if self.about.made_by == "stream" else complete[-1:]

    def next_batch(self) -> int:
        return max(self._numbers("buckets"), default=-1) + 1

    def drop_before(self, batch: int) -> None:
        """What a newer batch has replaced."""
        for table in ("problems", "files", "buckets"):
            for number in self._numbers(table):
                if number < batch:
                    self._system.delete_dir(f"{self._path}/{table}/batch={number}")

    @property
    def buckets(self) -> DataFrame:
        """Merged histograms by host, vhost, queue, kind, build and window."""
        return self._read("buckets", BUCKETS).where(~f.col("late")).drop("late", "batch")

    @property
    def late(self) -> DataFrame:
        """What came after its window was closed."""
        return self._read("buckets", BUCKETS).where("late").drop("late", "batch")

    @property
    def files(self) -> DataFrame:
        return self._read("files", FILES)

    @property
    def problems(self) -> DataFrame:
        return self._read("problems", PROBLEMS)

    def write(self, table: str, batch: int, frame: DataFrame, *partitions: str) -> None:
        """A batch's part of a table, in place of what an earlier try may have left."""
        path = f"{self.place}/{table}/batch={batch}"
        frame.write.mode("overwrite").partitionBy(*partitions).parquet(path)

    def write_result(self, name: str, frame: DataFrame) -> DataFrame:
        """In place of the former one; what was written."""
        path = f"{self.place}/{name}"
        dated = "window" in frame.columns
        if dated:
            frame = frame.withColumn("date", f.to_date("window"))
        frame.write.mode("overwrite").partitionBy(*(["date"] if dated else [])).parquet(path)
        return self.spark.read.schema(frame.schema).parquet(path)

    def write_json(self, name: str, value: Any) -> None:
        path = f"{self._path}/{name}"
        self._system.create_dir(path.rpartition("/")[0], recursive=True)
        with self._system.open_output_stream(f"{path}.part") as stream:
            stream.write(json.dumps(value).encode())
        self._system.move(f"{path}.part", path)

    def read_json(self, name: str) -> Any:
        with self._system.open_input_file(f"{self._path}/{name}") as stream:
            return json.loads(stream.read())

    def _read(self, table: str, schema: str) -> DataFrame:
        paths = [f"{self.place}/{table}/batch={number}" for number in self.batches()]
        if not paths:
            return self.spark.createDataFrame([], schema)
        reading = self.spark.read.schema(schema).option("basePath", f"{self.place}/{table}")
        return reading.parquet(*paths)

    def _exists(self, name: str) -> bool:
        found = self._system.get_file_info(f"{self._path}/{name}")
        return bool(found.type != fs.FileType.NotFound)

    def _is_complete(self, table: str, batch: int) -> bool:
        return self._exists(f"{table}/batch={batch}/_SUCCESS")

    def _numbers(self, table: str) -> list[int]:
        selector = fs.FileSelector(f"{self._path}/{table}", allow_not_found=True)
        names = [info.base_name for info in self._system.get_file_info(selector)]
        return sorted(int(name[6:]) for name in names if name.startswith("batch="))
