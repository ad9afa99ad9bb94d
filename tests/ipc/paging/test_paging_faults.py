"""Durable pages after a power loss at any call; and each guard, removed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ipc.journal.test_journal_faults import run, storage
from tests.support.compiler import LIBRARY, PREFIX, write_internals
from tests.support.storage import FOLDER_SYNCED, UNLINKED, entries

__all__ = ["storage"]  # a fixture

IPC = Path(__file__).parents[3] / "ipc"
SCRIPT = "tests.support.paging_script"
JOURNAL_SYNC_US = 2000  # the pager is ahead of the journal, as far as it may be
FLAGS = ["-fPIC", "-O0", "-std=gnu11", "-pthread", "-fvisibility=hidden", "-w"]


def crash_points(storage: Path, folder: Path, seed: int, every: int, mutant: str = "") -> str:
    live, trace, left = folder / "live", folder / "trace", folder / "left"
    live.mkdir()
    left.mkdir()
    environment = {
        "STORAGE_FOLDER": str(live),
        "STORAGE_TRACE": str(trace),
        "STORAGE_SYNC_US": str(JOURNAL_SYNC_US),
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


MUTANTS = (
    Mutant("no-sync", "paging/page_writer.c", "fdatasync(to->writer) != 0 ||", "0 ||"),
    Mutant(
        "no-sync-of-the-folder", "paging/page_writer.c",
        "to->is_new && fsync(to->folder) != 0", "0",
    ),
    Mutant(
        "no-sync-of-a-new-folder", "paging/page_store.c",
        "folder >= 0 && fsync(folder) == 0", "folder >= 0",
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
    ),
    Mutant(
        "no-numbers-in-the-journal", "broker/deduplication.c",
        "pages ? origin >> L_ORIGIN_PRODUCER_SHIFT : 0", "0",
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def library_with(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Mutant], Path]:
    """All of the library but its kernels, to be preloaded; what is not changed is compiled once."""
    work = tmp_path_factory.mktemp("mutants")
    write_internals(work)
    folders = [f"-I{work}", f"-I{IPC}", f"-I{PREFIX / 'include'}"]

    def compiled(source: Path, target: Path) -> Path:
        subprocess.run(["cc", "-c", *FLAGS, *folders, source, "-o", target], check=True)
        return target

    objects = {
        source: compiled(source, work / f"{source.parent.name}-{source.stem}.o")
        for source in [work / "strerror.c", *IPC.glob("*/*.c")]
        if source.name != "dropped.c"  # the extension of Python
    }

    def made(mutant: Mutant) -> Path:
        text = (IPC / mutant.file).read_text()
        assert text.count(mutant.old) == 1, f"{mutant.name}: write it anew"
        changed = work / f"{mutant.name}.c"
        changed.write_text(text.replace(mutant.old, mutant.new))
        parts = objects | {IPC / mutant.file: compiled(changed, work / f"{mutant.name}.o")}
        library = work / f"lib{mutant.name}.so"
        link = ["cc", "-shared", "-pthread", *parts.values(), LIBRARY, "-o", library]
        subprocess.run([*link, f"-Wl,-rpath,{LIBRARY.parent}"], check=True)
        return library

    return made


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_guard_is_needed(
    storage: Path, tmp_path: Path, library_with: Callable[[Mutant], Path], mutant: Mutant
) -> None:
    said = crash_points(storage, tmp_path, 1, 12, str(library_with(mutant)))
    assert said.startswith("call "), said
