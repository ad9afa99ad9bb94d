"""The data source `shmbroker`: a spool as rows, for spark.read and spark.readStream.

    spark.dataSource.register(Spool)
    spark.read.format("shmbroker").load("/var/spool/shmbroker")

Options: `windowSeconds`, intervals of a file that begin in the same window come as one, or as
a few (0: each as it is); `packBytes`, how much is read by one task (32 MiB; a file is never split);
of streams `ledger`, where it is written down what was taken (needed), and `filesPerBatch` (1,000).
`interval.py` says what the rows are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from shmbroker.perf.spark import interval, spool
from shmbroker.perf.spark.ledger import Ledger
from shmbroker.perf.spark.spool import NoSpool, SpoolFile, opened

PACK_BYTES = 32 << 20
FILE_BYTES = 64 << 10
"""What opening a file costs, in bytes that could be read meanwhile."""
FILES_PER_BATCH = 1000
ALL = 1 << 31


@dataclass
class Pack(InputPartition):
    """Some whole files for one task."""

    paths: list[str]


@dataclass(frozen=True)
class Reading:
    """What is the same for all tasks of a query."""

    place: str
    pack_bytes: int
    window: int


def packed(files: list[SpoolFile], pack_bytes: int) -> list[InputPartition]:
    """As few packs as keep each below the limit; the largest files first: tasks end together."""
    packs: list[list[str]] = []
    room = 0
    for file in sorted(files, key=lambda file: -file.size):
        cost = file.size + FILE_BYTES
        if not packs or cost > room:
            packs.append([])
            room = pack_bytes
        packs[-1].append(file.path)
        room -= cost
    return [Pack(paths) for paths in packs]


def read_pack(reading: Reading, pack: InputPartition) -> Iterator[pa.RecordBatch]:
    if isinstance(pack, Pack):  # an empty spool is one partition of nothing
        system, _ = opened(reading.place)
        for path in pack.paths:
            yield from spool.read(system, path, reading.window)


class Spool(DataSource):
    """Named "shmbroker" to Spark."""

    @classmethod
    def name(cls) -> str:
        return "shmbroker"

    def schema(self) -> str:
        return interval.DDL

    def reader(self, schema: Any) -> DataSourceReader:
        return SpoolReader(self.reading)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        ledger = self.options.get("ledger")
        if not ledger:
            raise NoSpool("a stream needs the option ledger: a folder beside its checkpoint")
        return SpoolStream(self.reading, ledger, self.number("filesPerBatch", FILES_PER_BATCH))

    @property
    def reading(self) -> Reading:
        place = self.options.get("path")
        if not place:
            raise NoSpool("which spool? load(path) takes a folder")
        window = self.number("windowSeconds", 0) * 10**9
        return Reading(str(place), self.number("packBytes", PACK_BYTES), window)

    def number(self, name: str, default: int) -> int:
        text = self.options.get(name, str(default))
        if not text.isdigit():
            raise NoSpool(f"the option {name} is {text!r}; it is a whole number")
        return int(text)


class SpoolReader(DataSourceReader):
    """All complete files that are there when the query is planned."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    def partitions(self) -> list[InputPartition]:
        return packed(spool.files(self.reading.place), self.reading.pack_bytes)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_pack(self.reading, partition)


class SpoolStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What is new since the last batch; an offset is an entry of the ledger."""

    def __init__(self, reading: Reading, ledger: str, files_per_batch: int) -> None:
        self.reading = reading
        self.files_per_batch = files_per_batch
        self._ledger_place = ledger
        self._ledger: Ledger | None = None
        self._available: list[SpoolFile] | None = None

    @property
    def ledger(self) -> Ledger:
        """Opened by the driver only: tasks get a copy of us that has none."""
        if self._ledger is None:
            self._ledger = Ledger(self._ledger_place)
        return self._ledger

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_ledger": None, "_available": None}

    def initialOffset(self) -> dict[str, int]:
        return {"entry": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        self._available = spool.files(self.reading.place)

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        if self.ledger.last > start["entry"]:  # taken before somebody killed us
            return {"entry": start["entry"] + 1}
        found = spool.files(self.reading.place) if self._available is None else self._available
        return {"entry": self.ledger.take(found, self.files_per_batch)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return packed(self.ledger.between(start["entry"], end["entry"]), self.reading.pack_bytes)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_pack(self.reading, partition)
