"""Writing page files: a batch of records, one write, for durable queues one sync.

Space is set aside when a file is begun, so that a full disk is mostly found out there; the size is
that of what was written.  Files are not recycled: that would save nothing without syncs, and what
is read before the kernel has written it to the disk never gets there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from shmbroker.core.codes import OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc._quick import lib as quick
from shmbroker.ipc.base.room import Room
from shmbroker.ipc.paging.page_file import HEADER_BYTES, Header, seed_of
from shmbroker.ipc.paging.page_folder import NONE, PageFolder
from shmbroker.ipc.paging.sealing import QUICK_BYTES


class PageWriter:
    """Writes the file before `folder.next`, once it has begun it."""

    def __init__(self, folder: PageFolder, page_bytes: int, epoch: int) -> None:
        self._folder = folder
        self._page_bytes = page_bytes
        self._epoch = epoch
        self._file = NONE
        self._is_new = False  # its name is not synced
        self._sealing = ffi.new("sb_sealing *")
        self.written = 0
        self.ends: Callable[[], None] = lambda: None
        """Told before its file is closed: somebody may be reading it."""

    @property
    def has_file(self) -> bool:
        return self._file >= 0

    @property
    def left(self) -> int:
        """Records may begin below that; then it is another file's turn."""
        begun = self.written if self.has_file else HEADER_BYTES
        return max(self._page_bytes - begun, 1)

    def write(self, room: Room, start: int, end: int) -> None:
        """Put these records of the room behind all others: they are in a file, and safe there."""
        if not self.has_file:
            self._begin()
        sealing = self._sealing
        sealing.at = room.address + start
        sealing.end = room.address + end
        sealing.offset = self.written
        seal = quick if end - start <= QUICK_BYTES else lib
        seal.sb_records_seal(sealing)
        self._write(room.view[start:end], self.written)
        self._sync()
        self.written += end - start
        self._folder.size += end - start
        if self.written >= self._page_bytes:
            self.end()

    def _write(self, data: memoryview, at: int) -> None:
        while data:
            try:
                wrote = os.pwrite(self._file, data, at)
            except OSError as error:
                raise self._refused(error, "writing") from error
            data, at = data[wrote:], at + wrote

    def _refused(self, error: OSError, doing: str) -> Exception:
        return self._folder.refused(error, doing, self._folder.next - 1)

    def _begin(self) -> None:
        folder = self._folder
        header = bytes(Header.of_now(folder.next, self._epoch))
        self._file = folder.make_file()
        folder.next += 1
        try:
            if lib.sb_file_reserve(self._file, self._page_bytes) != OK:
                error = OSError(ffi.errno, os.strerror(ffi.errno))
                raise self._refused(error, "setting space aside for")
            self._write(memoryview(header), 0)
        except BaseException:
            folder.next -= 1
            folder.remove(folder.next)
            self.close()
            raise
        self._sealing.seed = seed_of(header)
        self.written = HEADER_BYTES
        self._is_new = True

    def _sync(self) -> None:
        """Of the durable: what was written is there after a power loss, under its name."""
        if not self._folder.syncs:
            return
        try:
            os.fdatasync(self._file)
        except OSError as error:
            raise self._refused(error, "syncing") from error
        if self._is_new:
            self._folder.sync("syncing", self._folder.next - 1)
        self._is_new = False

    def forget(self) -> None:
        """What could not be written: a part of a record may be there, and would look like damage
        behind shorter ones.  If a sync failed, nothing is put behind what may be lost."""
        is_cut = False
        if self.has_file:
            with suppress(OSError):
                os.ftruncate(self._file, self.written)
                is_cut = True
        if not is_cut or self._folder.syncs:
            self.end()

    def end(self) -> None:
        """The next record goes to a new file."""
        self.ends()
        self.close()

    def close(self) -> None:
        if self.has_file:
            os.close(self._file)
        self._file = NONE
