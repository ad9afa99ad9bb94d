"""The journal on a disk that fails, and with the power gone at any call; each guard, removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.changed_library import IPC, ChangedLibrary
from tests.support.journal_mutants import (
    AHEAD,
    COMPACTING,
    CRASH,
    DAMAGE,
    INHERITING,
    MUTANTS,
    NAMING,
    ORDER,
    SYNC,
    TAKEOVER,
    Mutant,
)
from tests.support.journal_reading_mutants import IN_PYTHON
from tests.support.storage import MADE, RENAMED, WRITTEN, Storage, entries

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "tests" / "support" / "native" / "storage.c"
SEEDS = (1, 2, 3, 4)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What writes down the calls."""
    library = tmp_path_factory.mktemp("storage") / "storage.so"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]
    subprocess.run(["cc", *flags, SOURCE, "-o", library, "-ldl"], check=True)
    return library


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> ChangedLibrary:
    """The journal alone, and what it stands on."""
    sources = [*IPC.glob("journal/*.c"), *IPC.glob("base/*.c")]
    return ChangedLibrary(tmp_path_factory.mktemp("journal"), sources)


def run(module: str, *arguments: object, preload: str = "", **environment: str) -> str:
    """The last line that it says."""
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env=os.environ | {"LD_PRELOAD": preload} | environment,
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )
    lines = done.stdout.splitlines()
    return lines[-1] if lines and done.returncode == 0 else f"{done.returncode}: {done.stderr}"


SCRIPT = "tests.support.journal_script"


def recorded(storage: Path, folder: Path, seed: int, mutant: str, **changed: str) -> str:
    """What a run says whose calls are in the file `trace`."""
    live = folder / "live"
    live.mkdir()
    environment = {"STORAGE_FOLDER": str(live), "STORAGE_TRACE": str(folder / "trace")} | changed
    return run(SCRIPT, "record", live, seed, preload=f"{storage} {mutant}", **environment)


def crash_points(
    storage: Path, folder: Path, seed: int, every: int = 1, mutant: str = "", **changed: str
) -> str:
    """Record a run and judge every state that a crash may have left."""
    said = recorded(storage, folder, seed, mutant, **changed)
    if said != "recorded":
        return said
    left = folder / "left"
    left.mkdir()
    environment = {"STORAGE_FOLDER": str(left)} | changed
    preload = f"{storage} {mutant}"
    return run(
        SCRIPT, "check", folder / "trace", left, seed, every, preload=preload, **environment
    )


def order(storage: Path, folder: Path, mutant: str = "", **changed: str) -> str:
    """Of writing: no file that the disk may still have under the name of a segment is another one
    by now.  Few states of a crash show it, and it depends on who is quick how many."""
    said = recorded(storage, folder, 1, mutant, **changed)
    disk, wrong = Storage(), 0
    for call in entries(folder / "trace"):
        if call.kind == WRITTEN:
            file = disk.files[call.inode]
            wrong += any(
                has is file and disk.now.get(name) is not file and not name.endswith(".spare")
                for name, has in disk.synced.items()
            )
        disk.apply(call)
    return "well" if said == "recorded" and wrong == 0 else f"{said}, {wrong} writes came too early"


def damage(folder: Path, count: int, mutant: str = "", **changed: str) -> str:
    (folder / "damaged").mkdir()
    script = "tests.support.journal_damage"
    return run(script, folder / "damaged", 1, count, preload=mutant, **changed)


def failures(storage: Path, folder: Path, part: str, mutant: str = "", **changed: str) -> str:
    (folder / "failing").mkdir()
    where = str(folder / "failing")
    preload = f"{storage} {mutant}"
    module = "tests.support.journal_failures"
    return run(module, part, where, preload=preload, STORAGE_FOLDER=where, **changed)


@pytest.mark.parametrize(("seed", "every"), [(1, 1), (2, 4)])
def test_every_crash_point(storage: Path, tmp_path: Path, seed: int, every: int) -> None:
    said = crash_points(storage, tmp_path, seed, every)
    assert said.endswith(" states are well"), said
    calls = list(entries(tmp_path / "trace"))
    assert sum(call.kind == RENAMED for call in calls) > 5, "segments were recycled"
    assert sum(call.kind == MADE for call in calls) > 5


@pytest.mark.parametrize("answer_ms", [(), (5,)], ids=["disk", "frames in flight"])
def test_every_crash_point_of_schedules_and_last_values(
    storage: Path, tmp_path: Path, vhost: str, answer_ms: tuple[int, ...]
) -> None:
    """Recovered as a vhost: nothing that was confirmed is lost, or there twice; also with a second
    end, whose answers come late."""
    live, trace, left, events = (tmp_path / name for name in ("live", "trace", "left", "events"))
    live.mkdir()
    left.mkdir()
    script = "tests.support.schedule_script"
    environment = {"STORAGE_FOLDER": str(live), "STORAGE_TRACE": str(trace)}
    record = ("record", live, events, vhost, 1, *answer_ms)
    said = run(script, *record, preload=str(storage), **environment)
    assert said == "recorded", said
    said = run(script, "check", trace, events, left, vhost, 1, 8)
    assert said.endswith(" states are well"), said


def test_every_crash_point_of_a_takeover(storage: Path, tmp_path: Path, vhost: str) -> None:
    """`replicate`: what is not replicated is there as a whole, or gone as a whole."""
    live, trace, left = (tmp_path / name for name in ("live", "trace", "left"))
    for store in (live, left):
        (store / "journal").mkdir(parents=True)
    script = "tests.support.takeover_script"
    environment = {"STORAGE_FOLDER": str(live / "journal"), "STORAGE_TRACE": str(trace)}
    said = run(script, "record", live, vhost, preload=str(storage), **environment)
    assert said == "recorded", said
    said = run(script, "check", trace, left, vhost)
    assert said.endswith(" are well"), said
    assert " 0 " not in f" {said}", "states of both kinds"


def test_a_file_is_written_under_its_own_name(storage: Path, tmp_path: Path) -> None:
    assert order(storage, tmp_path) == "well"


def test_damage(tmp_path: Path) -> None:
    said = damage(tmp_path, 400)
    assert said == "400 damages are well", said


@pytest.mark.parametrize(
    "part",
    [
        SYNC,
        TAKEOVER,
        COMPACTING,
        AHEAD,
        INHERITING,
        NAMING,
        "full",
        "room",
        "read-only",
        "scheduled",
        "each-call",
    ],
)
def test_failures(storage: Path, tmp_path: Path, part: str) -> None:
    said = failures(storage, tmp_path, part)
    assert said == "well", said


def library_without(journal: ChangedLibrary, mutant: Mutant) -> Path:
    """With the C and the kernel that the mutant changes."""
    kernels = []
    if (inside := mutant.kernel) is not None:
        kernels = [journal.kernels(mutant.name, inside.kernel, inside.old, inside.new)]
    if not mutant.file:
        return journal.linked(mutant.name, *kernels)
    return journal.made(mutant.name, mutant.file, mutant.old, mutant.new, *kernels)


def said_by(
    storage: Path, folder: Path, noticed_by: str, mutant: str, **environment: str
) -> str:
    if noticed_by == CRASH:  # which states there are depends on when segments were recycled
        said = ""
        for seed in SEEDS:
            work = folder / f"{seed}"
            work.mkdir()
            said = crash_points(storage, work, seed, mutant=mutant, **environment)
            if not said.endswith("well"):
                break
        return said
    if noticed_by == ORDER:
        return order(storage, folder, mutant, **environment)
    if noticed_by == DAMAGE:
        return damage(folder, 400, mutant, **environment)
    return failures(storage, folder, noticed_by, mutant, **environment)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_guard_is_needed(
    storage: Path, tmp_path: Path, journal: ChangedLibrary, mutant: Mutant
) -> None:
    library = str(library_without(journal, mutant))
    said = said_by(storage, tmp_path, mutant.noticed_by, library)
    assert not said.endswith("well"), said
    assert "symbol lookup" not in said, said


@pytest.mark.parametrize(
    ("mutant", "noticed_by"), [(each.name, by) for each, by in IN_PYTHON.items()]
)
def test_each_guard_in_python_is_needed(
    storage: Path, tmp_path: Path, mutant: str, noticed_by: str
) -> None:
    said = said_by(storage, tmp_path, noticed_by, "", JOURNAL_MUTANT=mutant)
    assert not said.endswith("well"), said
    assert "snippet" not in said, said
