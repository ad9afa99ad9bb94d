"""The journal of a replica: half a copy of the live's, a whole one, or one that was set aside."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from shmbroker.ipc.instance.whole import sync_folder, write_whole

JOURNAL: Final = "journal"
SAVED: Final = "oldreplica."
HALF: Final = "half"
"""A file in the journal: it is a copy that is not whole yet."""
ASIDE: Final = "aside"
"""A file in a journal that was set aside: when, and what nobody else has of it."""


def set_aside(store: Path) -> Path | None:
    """The journal there, under a name with the next number; half a copy is discarded.

    What it is called now; None: there was none.  Nothing that is kept goes before `end_copy`.
    """
    folder = store / JOURNAL
    if not folder.exists() or not any(folder.glob("*.journal")):
        return None
    if (folder / HALF).exists():
        _discard(folder)
        return None
    there = saved(store)
    place = store / f"{SAVED}{there[-1][0] + 1 if there else 1}"
    folder.rename(place)
    write_whole(place / ASIDE, {"at": datetime.now(UTC).isoformat(timespec="seconds")}, synced=True)
    sync_folder(store)
    return place


def _discard(folder: Path) -> None:
    """It says that it is half a copy until nothing else is left of it, whoever is killed."""
    for each in folder.iterdir():
        if each.name != HALF:
            each.unlink()
    sync_folder(folder)
    shutil.rmtree(folder)


def begin_copy(store: Path) -> None:
    """Its journal, which has nothing, is half a copy from now on."""
    folder = store / JOURNAL
    folder.mkdir(mode=0o700, exist_ok=True)
    write_whole(folder / HALF, {}, synced=True)


def end_copy(store: Path) -> None:
    """Its journal is whole, and synced."""
    half = store / JOURNAL / HALF
    if half.exists():
        half.unlink()
        sync_folder(half.parent)


def keep_newest(store: Path, most: int) -> None:
    """Of what was set aside, when the journal is whole; -1: all of it."""
    for _, old in saved(store)[: None if most == 0 else -most] if most >= 0 else []:
        shutil.rmtree(old)


def saved(store: Path) -> list[tuple[int, Path]]:
    """What was set aside, by ascending number."""
    numbers = [
        (int(path.name[len(SAVED) :]), path)
        for path in store.glob(f"{SAVED}*")
        if path.name[len(SAVED) :].isdigit()
    ]
    return sorted(numbers)
