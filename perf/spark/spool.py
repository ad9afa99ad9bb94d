"""A spool as files: which there are, and how one is opened.

Where they are is pyarrow's to know: a local folder, or whatever it or libhdfs has a scheme for
(hdfs, viewfs, s3, gs, abfs).  A file that is still written ends in .part and is not looked at.
What is there as .hlog and as .parquet is the same twice: Parquet is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pyarrow as pa
from pyarrow import fs

from shmbroker.perf.spark import columnar, hlog
from shmbroker.perf.spark.journal import Journal

SUFFIXES = (".parquet", ".hlog")
"""The one that is preferred first."""


class NoSpool(Exception):
    """There is nothing to read at that place."""


@dataclass(frozen=True)
class SpoolFile:
    """One complete file; its name never stands for other content later."""

    path: str
    size: int

    @property
    def stem(self) -> str:
        """The same for both forms of the same intervals."""
        return str(PurePosixPath(self.path).with_suffix(""))

    @property
    def start(self) -> int:
        """When it begins, as its name ends; a stream that catches up takes files in that order."""
        number = self.stem.rpartition("-")[2]
        return int(number) if number.isdecimal() else 0


def opened(place: str) -> tuple[fs.FileSystem, str]:
    """The file system of a place, and its path there."""
    try:
        if re.match(r"\w[\w+.-]+:", place):
            system, path = fs.FileSystem.from_uri(place)
            return system, path
        return fs.LocalFileSystem(), str(Path(place).expanduser().absolute())
    except (pa.ArrowException, OSError, ValueError) as error:
        raise NoSpool(f"{place}: {error}") from None


def files(place: str) -> list[SpoolFile]:
    """What is complete, the oldest first."""
    system, path = opened(place)
    info = system.get_file_info(path)
    if info.type == fs.FileType.NotFound:
        raise NoSpool(f"{place}: there is no such file or folder; a spool is a folder")
    if info.type == fs.FileType.File:
        return [SpoolFile(info.path, info.size)]
    found = [
        SpoolFile(entry.path, entry.size)
        for entry in system.get_file_info(fs.FileSelector(path, recursive=True))
        if entry.type == fs.FileType.File and is_ours(entry.path, path)
    ]
    return without_twins(sorted(found, key=lambda file: (file.start, file.path)))


def is_ours(path: str, root: str) -> bool:
    parts = PurePosixPath(path).relative_to(root).parts
    return path.endswith(SUFFIXES) and not any(part.startswith((".", "_")) for part in parts)


def without_twins(found: list[SpoolFile]) -> list[SpoolFile]:
    """Of both forms of the same, Parquet."""
    columnar_stems = {file.stem for file in found if file.path.endswith(SUFFIXES[0])}
    return [f for f in found if f.path.endswith(SUFFIXES[0]) or f.stem not in columnar_stems]


def read(system: fs.FileSystem, path: str, window: int = 0) -> Iterator[pa.RecordBatch]:
    """The rows of one file, what is wrong with it among them: it raises for no file."""
    journal = Journal(path, window)
    try:
        with system.open_input_file(path) as stream:
            if path.endswith(SUFFIXES[0]):
                yield from columnar.read(stream, journal)
            else:
                yield from hlog.read(path, stream, journal)
    except OSError as error:
        journal.problem(0, f"it cannot be read: {error}")
    yield from journal.end()
