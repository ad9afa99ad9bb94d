"""A journal is written from lines of JSON, where a broker reads it: all of it, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from shmbroker.ipc.instance.journal_place import JournalPlace
from shmbroker.ipc.instance.store import IMPORTING, begin_history, check_imported, has_journal
from shmbroker.ipc.instance.whole import sync_folder, write_whole
from shmbroker.ipc.journal.export import imported


def imported_at(place: JournalPlace, lines: Iterable[str | bytes], segment_bytes: int = 0) -> int:
    """How many records; nobody else uses the journal meanwhile."""
    if place.store is None or has_journal(place.journal):  # the latter is refused
        return imported(place.journal, lines, segment_bytes)
    check_imported(place.store, place.journal)
    with _begun(place.store, place.journal):
        count = imported(place.journal, lines, segment_bytes)
        # what was lost had positions that are used again: links must not take them for known
        begin_history(place.store)
    return count


@contextmanager
def _begun(store: Path, journal: Path) -> Iterator[None]:
    """Nothing stays of what fails; what is killed is seen by the next start (`Store.of`)."""
    mark = store / IMPORTING
    write_whole(mark, {}, synced=True)
    try:
        yield
    except BaseException:
        for each in journal.glob("*.journal"):  # there was none
            each.unlink()
        mark.unlink()
        raise
    mark.unlink()
    sync_folder(store)
