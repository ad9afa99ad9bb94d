"""live.lock: who of those that share a store is live, and who is next.

Two bytes of the file are locked: the first by the live, the second by the backup that is announced.
Whoever wants one of them sleeps in the kernel, and is woken when its holder lets go or dies.  Who
has the second sleeps on the first; the others sleep on the second.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Final

from shmbroker.ipc.instance import ofd
from shmbroker.ipc.instance.record import BYTES, Record, RecordDamaged, decoded

FILE: Final = "live.lock"

LIVE_BYTE: Final = 0
ANNOUNCED_BYTE: Final = 1


WRITING_SECONDS_MAX: Final = 1.0
"""One sector, from memory."""

FILE_NUMBER_MIN: Final = 512
"""Who dies lets go of files with high numbers first, and closing an inotify file takes it 10 ms and
more.  A participant's lock has an even higher number (native/connection.c): who gets the live lock
finds that the former live takes part no more."""


def with_high_number(file: int) -> int:
    try:
        high: int = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, FILE_NUMBER_MIN)
    except OSError:  # the process may not have so many
        return file
    os.close(file)
    return high


class LiveLock:
    def __init__(self, store: Path) -> None:
        self.path = store / FILE
        self.file = with_high_number(os.open(self.path, os.O_RDWR | os.O_CLOEXEC))

    def try_live(self) -> bool:
        return ofd.try_lock(self.file, LIVE_BYTE)

    def wait_live(self) -> None:
        ofd.lock(self.file, LIVE_BYTE)

    def release_live(self) -> None:
        ofd.unlock(self.file, LIVE_BYTE)

    def wait_announced(self) -> None:
        ofd.lock(self.file, ANNOUNCED_BYTE)

    def release_announced(self) -> None:
        ofd.unlock(self.file, ANNOUNCED_BYTE)

    @property
    def another_is_live(self) -> bool:
        return ofd.is_locked(self.file, LIVE_BYTE)

    @property
    def another_is_announced(self) -> bool:
        return ofd.is_locked(self.file, ANNOUNCED_BYTE)

    def record(self) -> Record:
        """RecordDamaged if it is that, and not only just being written."""
        ends_at = time.monotonic() + WRITING_SECONDS_MAX
        while (found := self.record_if_whole()) is None and time.monotonic() < ends_at:
            time.sleep(0)
        return found or decoded(os.pread(self.file, BYTES, 0))

    def record_if_whole(self) -> Record | None:
        """None if it is just being written: there will be word of that."""
        try:
            return decoded(os.pread(self.file, BYTES, 0))
        except RecordDamaged:
            return None

    def write(self, record: Record) -> None:
        """Synced when it returns.  Only for who is live."""
        os.pwrite(self.file, record.encoded(), 0)
        os.fdatasync(self.file)

    def close(self) -> None:
        os.close(self.file)


def create(store: Path) -> os.stat_result:
    """The file, with the record of nobody; what the system says of it."""
    file = os.open(store / FILE, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(file, Record().encoded(), 0)
        os.fsync(file)
        return os.fstat(file)
    finally:
        os.close(file)
