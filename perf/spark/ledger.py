"""Which files a stream has taken, and in which batch.

One file an entry, `00000007.json`, numbered without gaps; it is complete when it has its name.
Spark's offset is the number of the last entry.  Entries that Spark has not written down yet,
because it was killed in between, are used as they are: a batch that is repeated has the same files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from pyarrow import fs

from shmbroker.perf.spark.spool import SpoolFile, opened


class Ledger:
    """One writer: the driver of the query to which the checkpoint belongs."""

    def __init__(self, place: str) -> None:
        self._system, self._path = opened(place)
        self._system.create_dir(self._path, recursive=True)
        self._entries: dict[int, list[SpoolFile]] = {}
        for info in self._system.get_file_info(fs.FileSelector(self._path)):
            if info.base_name.endswith(".json"):
                self._entries[int(info.base_name[:-5])] = self._read(info.path)
        self.last = max(self._entries, default=0)
        self._stems = {file.stem for files in self._entries.values() for file in files}

    def _read(self, path: str) -> list[SpoolFile]:
        with self._system.open_input_file(path) as stream:
            return [SpoolFile(path, size) for path, size in json.loads(stream.read())]

    def take(self, found: Iterable[SpoolFile], at_most: int) -> int:
        """Write down what is new; the number of the last entry."""
        new = [file for file in found if file.stem not in self._stems][:at_most]
        if new:
            number = self.last + 1
            name = f"{self._path}/{number:08}.json"
            with self._system.open_output_stream(f"{name}.part") as stream:
                stream.write(json.dumps([(file.path, file.size) for file in new]).encode())
            self._system.move(f"{name}.part", name)
            self._entries[number] = new
            self._stems.update(file.stem for file in new)
            self.last = number
        return self.last

    def between(self, start: int, end: int) -> list[SpoolFile]:
        """The files after one entry, up to another."""
        return [file for number in range(start + 1, end + 1) for file in self._entries[number]]
