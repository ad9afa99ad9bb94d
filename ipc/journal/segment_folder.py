"""The folder of a journal as it is read: which segments are there, and whose they are."""

from __future__ import annotations

import os
import re
from pathlib import Path
from struct import Struct
from typing import Final

from shmbroker.core.codes import SYSTEM
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error, error_for
from shmbroker.ipc.base.trust import Trust, check, refusal
from shmbroker.ipc.journal.checksum import CRC, checksum

NAME: Final = re.compile(r"([0-9a-f]{16})\.journal")
SERIAL_MAX: Final = (1 << 58) - 1
"""More is no serial that anybody has counted to."""
FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""A pipe would have us wait."""
REACHED_FILE: Final = "reached"
REACHED: Final = Struct("<Qqq36x")
REACHED_MAGIC: Final = 0x6863616572626873  # shbreach
UNIT: Final = 8


def segment_name(serial: int) -> str:
    return f"{serial:016x}.journal"


def size_of(segment: Path) -> int:
    """0: it was compacted meanwhile."""
    try:
        return segment.stat().st_size
    except FileNotFoundError:
        return 0


class SegmentFolder(Closable):
    def __init__(self, path: Path | str, what: str = "") -> None:
        """`what`: is done with it, as its errors say."""
        self.path, self.what = Path(path), what or f"journal {path}"
        try:
            self.file = os.open(path, FOLDER)
        except OSError as error:
            raise self.refused(error, f"opening the journal's folder {path}") from error
        self._trust = Trust(owner=os.fstat(self.file).st_uid)

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
        self.file = -1

    def refused(self, error: OSError, doing: str) -> Error:
        return self.failed(SYSTEM, f"{doing}: {error.strerror}")

    def failed(self, code: int, detail: str) -> Error:
        return error_for(code, self.what, detail=detail)

    def serials(self) -> list[int]:
        """Of all segments, ascending."""
        try:
            with os.scandir(self.file) as entries:
                names = [each.name for each in entries]
        except OSError as error:
            raise self.refused(error, f"listing {self.path}") from error
        found = (int(match[1], 16) for name in names if (match := NAME.fullmatch(name)))
        return sorted(serial for serial in found if 0 < serial <= SERIAL_MAX)

    def open(self, name: str) -> int | None:
        """To be read; None: there is no such file."""
        path = self.path / name
        try:
            file = os.open(name, READ, dir_fd=self.file)
        except FileNotFoundError:
            return None
        except OSError as error:
            if (why := refusal(path, error)) is not None:
                raise why from error
            raise self.refused(error, f"opening {path}") from error
        try:
            check(path, os.fstat(file), self._trust)
        except BaseException:
            os.close(file)
            raise
        return file

    def reached(self) -> tuple[int, int] | None:
        """The segment, and up to where it was synced at least, as its writer has noted it; None:
        nobody knows.  Read it before the names."""
        try:
            file = self.open(REACHED_FILE)
        except Error:
            return None
        if file is None:
            return None
        try:
            page = os.pread(file, REACHED.size + CRC.size, 0)
        except OSError:
            return None
        finally:
            os.close(file)
        if len(page) < REACHED.size + CRC.size:
            return None
        magic, serial, end = REACHED.unpack_from(page)
        [crc] = CRC.unpack_from(page, REACHED.size)
        is_good = magic == REACHED_MAGIC and crc == checksum(page[: REACHED.size])
        return (serial, end & -UNIT) if is_good and serial > 0 and end > 0 else None
