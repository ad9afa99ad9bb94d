"""live.lock as the lock: two bytes of the file are locked, one for each place.

Whoever wants one of them sleeps in the kernel, and is woken when its holder lets go or dies.  Who
is announced sleeps on the first byte; the others sleep on the second.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from shmbroker.ipc.instance.lock import ofd
from shmbroker.ipc.instance.lock.live_lock import LiveLock, News, Told
from shmbroker.ipc.instance.lock.record import Record, RecordFile
from shmbroker.ipc.instance.mount import mount_of
from shmbroker.ipc.instance.watch import Watch
from shmbroker.ipc.instance.whole import read_whole, write_whole

LIVE_BYTE: Final = 0
ANNOUNCED_BYTE: Final = 1

FAILBACK: Final = "failback"


class FileLock(LiveLock):
    def __init__(self, store: Path) -> None:
        self.store = store
        self.file = RecordFile(store)
        self.watch = Watch(store, is_remote=mount_of(store).is_remote)
        self._is_held = False

    @property
    def fence(self) -> int:
        return self.file.number

    def try_live(self) -> bool:
        self._is_held = ofd.try_lock(self.fence, LIVE_BYTE)
        return self._is_held

    def wait_live(self) -> None:
        ofd.lock(self.fence, LIVE_BYTE)
        self._is_held = True

    def release_live(self) -> None:
        self._is_held = False
        ofd.unlock(self.fence, LIVE_BYTE)

    def wait_announced(self) -> None:
        ofd.lock(self.fence, ANNOUNCED_BYTE)

    def release_announced(self) -> None:
        ofd.unlock(self.fence, ANNOUNCED_BYTE)

    @property
    def is_held(self) -> bool:
        return self._is_held

    @property
    def another_is_live(self) -> bool:
        return ofd.is_locked(self.fence, LIVE_BYTE)

    @property
    def another_is_announced(self) -> bool:
        return ofd.is_locked(self.fence, ANNOUNCED_BYTE)

    def record(self) -> Record:
        return self.file.read()

    def record_if_whole(self) -> Record | None:
        return self.file.read_if_whole()

    def write(self, record: Record) -> None:
        self.file.write(record)

    def ask_failback(self, epoch: int) -> bool:
        write_whole(self.store / FAILBACK, {"epoch": epoch})
        return True

    def is_failback_asked(self, epoch: int) -> bool:
        try:
            asked = read_whole(self.store / FAILBACK).get("epoch") == epoch
        except OSError:  # whatever has this name: nobody asks by it
            return False
        return asked and self.another_is_announced

    def failback_done(self) -> None:
        with suppress(OSError):  # it was about an epoch that is over
            (self.store / FAILBACK).unlink()

    def news(self) -> Told:
        while not self.watch.wait():
            pass
        return Told(News.CHANGED)

    def close(self) -> None:
        self.file.close()
        self.watch.close()
