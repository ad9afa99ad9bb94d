"""Durable pages after a power loss at any call; and each guard, removed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ipc.journal.test_journal_faults import run, storage
from tests.support.changed_library import ChangedLibrary, all_sources
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
) -> str:
    live, trace, left = folder / "live", folder / "trace", folder / "left"
    live.mkdir()
    left.mkdir()
    environment = {
        "STORAGE_FOLDER": str(live),
        "STORAGE_TRACE": str(trace),
        "STORAGE_SYNC_US": str(sync_us),
    }
    said = run(SCRIPT, "record", live, seed, preload=f"{storage} {mutant}", **environment)
    if said != "recorded":
        return said
    environment = {"STORAGE_FOLDER": str(left)}
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


@dataclass(frozen=True, slots=True)
class Mutant:
    """One guard removed."""

    name: str
    file: str
    old: str
    new: str
    sync_us: int = JOURNAL_SYNC_US


MUTANTS = (
    Mutant("no-sync", "paging/page_writer.c", "fdatasync(to->writer) != 0 ||", "0 ||"),
    Mutant(
        "no-sync-of-the-folder", "paging/page_writer.c",
        "to->is_new && fsync(to->folder) != 0", "0",
    ),
    Mutant(
        "no-sync-of-a-new-folder", "paging/page_store.c",
        "(!of->syncs || fsync(folder) == 0)", "true",
    ),
    Mutant(
        "files-go-before-the-journal-has-it", "paging/paged.c",
        "page_store_journaled(each->store, each->safe);",
        "page_store_journaled(each->store, each->next);",
    ),
    Mutant(
        "files-begin-before-the-journal-has-what-is-in-the-ring", "paging/paged.c",
        "each->awaits_journal = each->durable && each->safe < each->direct;",
        "each->awaits_journal = false;",
        # a pager that waits for a processor is behind a quicker journal, and needs no guard
        sync_us=10 * JOURNAL_SYNC_US,
    ),
    Mutant(
        "no-numbers-in-the-journal", "broker/deduplication.c",
        "pages ? origin >> L_ORIGIN_PRODUCER_SHIFT : 0", "0",
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ChangedLibrary:
    return ChangedLibrary(tmp_path_factory.mktemp("mutants"), all_sources())


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_guard_is_needed(
    storage: Path, tmp_path: Path, library: ChangedLibrary, mutant: Mutant
) -> None:
    made = library.made(mutant.name, mutant.file, mutant.old, mutant.new)
    said = crash_points(storage, tmp_path, 1, 12, str(made), mutant.sync_us)
    assert said.startswith("call "), said
