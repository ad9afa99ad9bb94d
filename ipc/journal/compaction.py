"""Compaction: the few messages of a segment that are still needed are staged anew, so that its file
can be used again.  A bit at a time, between other commits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.journal.segment import Segment
from shmbroker.ipc.journal.segment_folder import SegmentFolder


class Moved(Closable):
    """A segment that is moved."""

    def __init__(self, folder: str, serial: int, end: int) -> None:
        self._serial, self._end = serial, end
        self._folder = SegmentFolder(folder)
        try:
            self._segment = Segment.there(self._folder, serial)
        except BaseException:
            self._folder.close()
            raise
        self._segment.until = end
        self._segment.beside_writer()
        self._batch = ffi.new("sb_batch *")  # what is left of what was read
        self._batch.serial = serial
        self._address = 0

    def move(
        self, journal: Any, step: int, needed: Any, check: Callable[[int], int]
    ) -> bool:
        """About so many bytes of the log: whether that was all, or all that can be read."""
        batch = self._batch
        most = lib.sb_journal_staged(journal) + step
        while lib.sb_journal_staged(journal) < most:
            if batch.bytes == 0 and not self._read():
                is_all = self._segment.offset == self._end
                lib.sb_journal_moved(journal, self._serial, is_all)
                return True
            passed = check(lib.sb_journal_move(journal, batch, most, needed, ffi.NULL))
            self._hold(self._address + passed, batch.bytes - passed, batch.offset + passed)
        return False

    def _read(self) -> bool:
        found, _ = self._segment.batch(lib.sb_frames_check)
        if found is None:
            return False
        self._hold(found.address, found.length, found.offset)
        return True

    def _hold(self, address: int, length: int, offset: int) -> None:
        self._address, self._batch.records = address, ffi.cast("void *", address)
        self._batch.bytes, self._batch.offset = length, offset

    def close(self) -> None:
        self._segment.close()
        self._folder.close()
