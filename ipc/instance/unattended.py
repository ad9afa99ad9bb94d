"""Work on the files of a journal that no broker uses; none becomes live meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shmbroker.ipc.base.errors import InUse
from shmbroker.ipc.base.trust import seen_files
from shmbroker.ipc.instance.lock import ofd
from shmbroker.ipc.instance.lock.file_lock import LIVE_BYTE
from shmbroker.ipc.instance.lock.record import FILE, LIVE, Record, RecordFile
from shmbroker.ipc.instance.store import FILE_LOCK, NODE
from shmbroker.ipc.instance.whole import read_whole


@contextmanager
def unattended(journal: Path, store: Path | None = None) -> Iterator[None]:
    """InUse, and by whom, if somebody is live on the store of this journal, or writes it.

    `store`: of a journal that has a folder of its own.
    """
    store = store or journal.resolve().parent
    if not (store / FILE).exists():  # of a program that keeps a journal of its own
        check_files(journal)
        yield
        return
    lock = RecordFile(store)
    try:
        check_record(store, lock)
        check_files(journal)
        yield
    finally:
        lock.close()


def check_record(store: Path, lock: RecordFile) -> None:
    got = ofd.try_lock(lock.number, LIVE_BYTE)
    record = lock.read()
    kind = read_whole(store / NODE, seen_files()).get("lock", FILE_LOCK)
    by_lease = kind != FILE_LOCK and record.state == LIVE and may_run(record)
    if got and not by_lease:
        return
    if not may_run(record):
        raise InUse(f"somebody has just taken the live lock of store {store}: try again")
    assert record.process is not None
    raise InUse(
        f"instance {record.instance!r} (pid {record.process.pid}) is live on store {store}, and "
        "writes this journal: stop it first, by shmbroker stop DIR"
    )


def may_run(record: Record) -> bool:
    return record.process is not None and record.process.may_run


def check_files(journal: Path) -> None:
    """Whoever writes a segment has it locked (ipc/journal/store.c)."""
    for path in sorted(journal.glob("*.journal")):
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue
        try:
            if ofd.is_locked(file, 0):
                raise InUse(f"somebody writes {path}: end that program first")
        finally:
            os.close(file)
