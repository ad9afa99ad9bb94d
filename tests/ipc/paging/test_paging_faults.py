"""Durable pages after a power loss at any call; and each guard, removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ipc.journal.test_journal_faults import run, storage
from tests.support.changed_library import ChangedLibrary, all_sources
from tests.support.paging_mutants import MUTANTS
from tests.support.storage import FOLDER_SYNCED, UNLINKED, entries

__all__ = ["storage"]  # a fixture

SCRIPT = "tests.support.paging_script"
JOURNAL_SYNC_US = 2000  # the pager is ahead of the journal, as far as it may be


def crash_points(
    storage: Path,
    folder: Path,
    seed: int,
    every: int,
    mutant: str = "",
    sync_us: int = JOURNAL_SYNC_US,
    **more: str,
) -> str:
    live, trace, left = folder / "live", folder / "trace", folder / "left"
    live.mkdir()
    left.mkdir()
    environment = more | {
        "STORAGE_FOLDER": str(live),
        "STORAGE_TRACE": str(trace),
        "STORAGE_SYNC_US": str(sync_us),
    }
    said = run(SCRIPT, "record", live, seed, preload=f"{storage} {mutant}", **environment)
    if said != "recorded":
        return said
    environment = more | {"STORAGE_FOLDER": str(left)}
    return run(
        SCRIPT, "check", trace, left, seed, every, preload=f"{storage} {mutant}", **environment
    )


@pytest.mark.parametrize(("seed", "every"), [(1, 6), (2, 12)])
def test_every_crash_point(storage: Path, tmp_path: Path, seed: int, every: int) -> None:
    said = crash_points(storage, tmp_path, seed, every)
    assert said.endswith(" states are well"), said
    assert int(said.split()[0]) > 20
    calls = list(entries(tmp_path / "trace"))
    assert sum(call.kind == UNLINKED and ".page" in call.name for call in calls) > 1
    assert sum(call.kind == FOLDER_SYNCED and "pages/" in call.name for call in calls) > 5


BEHIND = "files-begin-before-the-journal-has-what-is-in-the-ring"
"""A pager that waits for a processor is behind a quicker journal, and needs no guard."""


@pytest.mark.parametrize("mutant", [each.name for each in MUTANTS])
def test_each_guard_is_needed(storage: Path, tmp_path: Path, mutant: str) -> None:
    sync_us = 10 * JOURNAL_SYNC_US if mutant == BEHIND else JOURNAL_SYNC_US
    said = crash_points(storage, tmp_path, 1, 12, sync_us=sync_us, PAGING_MUTANT=mutant)
    assert said.startswith("call "), said


def test_the_guard_of_the_journal_is_needed(storage: Path, tmp_path: Path) -> None:
    library = ChangedLibrary(tmp_path, all_sources())
    made = library.made(
        "no-numbers-in-the-journal", "broker/deduplication.c",
        "pages ? origin >> L_ORIGIN_PRODUCER_SHIFT : 0", "0",
    )  # fmt: skip
    said = crash_points(storage, tmp_path, 1, 12, str(made))
    assert said.startswith("call "), said
