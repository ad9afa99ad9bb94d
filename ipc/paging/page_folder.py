"""The folder with the page files of one queue, numbered by their serials from 1 on.

It is made with the first file: what has room in memory does not need it, and a full disk has no
room for it.  Of a durable queue its names are synced.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from shmbroker.core.codes import UNTRUSTED
from shmbroker.ipc.base.errors import Untrusted
from shmbroker.ipc.base.trust import Trust, check, refusal
from shmbroker.ipc.paging.page_file import HEADER_BYTES, name_of, serial_of
from shmbroker.ipc.paging.refused import Refused, refused

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
MAKE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
NONE: Final = -1
SHOWN: Final = 40
"""A line in the log is not long: so much of the folder's name."""


class PageFolder:
    def __init__(self, path: Path, *, syncs: bool, tell: Callable[[str], None]) -> None:
        """`tell`: of what is wrong with a file."""
        self.path = path
        self.syncs = syncs
        self.tell = tell
        self.first = self.next = 1
        """Serials: of the file that is read, and of the next one that will be begun."""
        self.size = 0
        """Bytes of records that were not read."""
        self._folder = NONE
        try:
            with suppress(FileNotFoundError):
                self._folder = os.open(path, FOLDER)
            if self._folder >= 0:
                self._count()
        except OSError as error:
            raise refused(error, f"opening the folder {path}") from error

    def _count(self) -> None:
        """Which files there are, and how large they are."""
        serials = []
        with os.scandir(self._folder) as entries:
            for each in entries:
                if serial := serial_of(each.name):
                    serials.append(serial)
                    self.size += max(each.stat().st_size - HEADER_BYTES, 0)
        if serials:
            self.first, self.next = min(serials), max(serials) + 1

    @property
    def is_empty(self) -> bool:
        """All files are read, or there are none."""
        return self.first == self.next

    def refused(self, error: OSError, doing: str, serial: int) -> Refused:
        return refused(error, f"{doing} {self.path}/{name_of(serial)}")

    def wrong(self, offset: int, what: str) -> None:
        """In the file that is read."""
        folder = self.path.name[:SHOWN]
        self.tell(f"{folder}/{name_of(self.first)}, offset {offset}: {what}")

    def _exist(self) -> None:
        if self._folder >= 0:
            return
        try:
            with suppress(FileExistsError):
                self.path.mkdir(0o700)
            above = os.open(f"{self.path}/..", FOLDER)
            try:
                if self.syncs:
                    os.fsync(above)
            finally:
                os.close(above)
            self._folder = os.open(self.path, FOLDER)
        except OSError as error:
            raise self.refused(error, "making the folder of", self.next) from error

    def make_file(self) -> int:
        """The next one, without its header."""
        self._exist()
        name = name_of(self.next)
        try:
            try:
                return os.open(name, MAKE, 0o600, dir_fd=self._folder)
            except FileExistsError:
                if not self.syncs:
                    raise
            # by one who was replaced: we know of all others
            os.unlink(name, dir_fd=self._folder)
            return os.open(name, MAKE, 0o600, dir_fd=self._folder)
        except OSError as error:
            raise self.refused(error, "making", self.next) from error

    def open_file(self, serial: int) -> int | None:
        """To be read; None: it is missing."""
        path = self.path / name_of(serial)
        try:
            file = os.open(name_of(serial), READ, dir_fd=self._folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            if (why := refusal(path, error)) is not None:
                raise Refused(UNTRUSTED, str(why)) from error
            raise self.refused(error, "opening", serial) from error
        try:
            check(path, os.fstat(file), Trust())
        except Untrusted as why:
            os.close(file)
            raise Refused(UNTRUSTED, str(why)) from why
        return file

    def remove(self, serial: int, *, is_damaged: bool = False) -> None:
        """It is not needed any more; one that is damaged gets another name, and is kept."""
        name = name_of(serial)
        with suppress(OSError):
            if is_damaged:
                os.rename(
                    name, f"{name}.damaged", src_dir_fd=self._folder, dst_dir_fd=self._folder
                )
            else:
                os.unlink(name, dir_fd=self._folder)

    def sync(self, doing: str, serial: int) -> None:
        """Its names."""
        try:
            if self._folder >= 0:
                os.fsync(self._folder)
        except OSError as error:
            raise self.refused(error, doing, serial) from error

    def close(self) -> None:
        if self._folder >= 0:
            os.close(self._folder)
        self._folder = NONE


def remove_folder(path: Path) -> None:
    """With its page files, and unless something is kept there for people."""
    with suppress(OSError):
        folder = os.open(path, FOLDER)
        try:
            with os.scandir(folder) as entries:
                for each in entries:
                    if serial_of(each.name):
                        os.unlink(each.name, dir_fd=folder)
        finally:
            os.close(folder)
    with suppress(OSError):
        path.rmdir()
