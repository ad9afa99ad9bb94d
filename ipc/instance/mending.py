"""Rewriting a live.lock whose record is invalid, of a store that no process holds.

The headers of the journal's segments have epochs.  A live writes its epoch first and begins its
segment then, so an epoch may have been written that no segment has, and a process with that epoch
must not pass for the next live.  So the new epoch is far above all of them.  With a lease the
database knows it exactly.

The broker continues with existing rings only if the last live is known to have had them: it wrote
the newest segment, and a file of this host or instance says that it ran here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from shmbroker.ipc.instance import beat, rings
from shmbroker.ipc.instance.lock import ofd
from shmbroker.ipc.instance.lock.file_lock import LIVE_BYTE
from shmbroker.ipc.instance.lock.record import LIVE, Record, RecordDamaged, RecordFile
from shmbroker.ipc.instance.store import FILE_LOCK, Store
from shmbroker.ipc.instance.whole import read_whole
from shmbroker.ipc.journal.segment import newest_of

EPOCHS_UNSEEN: Final = 1 << 20
"""More than were ever live without beginning a segment."""


def epoch_of_journal(folder: Path) -> int:
    """The highest of its segments."""
    epoch, _ = newest_of(folder)
    return epoch


def rings_of(vhost: str, ours: Path, attached: int, epoch: int) -> int:
    """The identity of those that the live of this epoch had, if that is known; else 0."""
    there, remembered = rings.found(vhost), read_whole(ours)
    was_ours = there.identity == remembered.get("identity")
    was_ours_last = was_ours and remembered.get("epoch") == epoch
    is_known = was_ours or there.identity == attached
    was_here_last = is_known and beat.age_of(vhost, epoch) is not None
    return there.identity if there.is_whole and (was_ours_last or was_here_last) else 0


def mended(store: Store, lock: str, vhost: str, ours: Path, attached: int = 0) -> Record:
    """As if the last live had crashed; only for who holds the place of the live.

    `ours` says with which rings we were live, `attached` which those of the live were.
    """
    known = epoch_of_journal(store.journal)
    unseen = EPOCHS_UNSEEN if lock == FILE_LOCK else 0
    return Record(known + unseen, LIVE, rings=rings_of(vhost, ours, attached, known))


def mend(store: Store, lock: str, vhost: str, ours: Path) -> tuple[Record, str] | None:
    """None if nothing is wrong; else what it says now, and what was wrong with it."""
    file = RecordFile(store.path)
    try:
        file.read()
        return None
    except RecordDamaged as damage:
        if not ofd.try_lock(file.number, LIVE_BYTE):
            raise RecordDamaged(
                f"{damage}; end the process that holds it (fuser {file.path}), and start again: "
                "what it should say is then taken from the journal"
            ) from None
        record = mended(store, lock, vhost, ours)
        file.write(record)
        return record, str(damage)
    finally:
        file.close()
