"""What a build with SHMBROKER_COMPILED installs; tests have sources, processes what is built."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from shmbroker.ipc.build.compiled import kept_folder
from shmbroker.netbridge.link import machine
from tests.support import sources

SEEDS = "40"
COMPILED = Path(machine.__file__).with_name(f"machine{EXTENSION_SUFFIXES[0]}")

compiled_only = pytest.mark.skipif(
    not COMPILED.exists(), reason="it was built without SHMBROKER_COMPILED"
)


def said(*words: str) -> str:
    done = subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True)
    return done.stdout


@compiled_only
def test_a_process_has_the_compiled_machine_and_a_test_its_source() -> None:
    shown = said("-c", "from shmbroker.netbridge.link import machine; print(machine.__file__)")
    assert shown.strip() == str(COMPILED)
    assert (machine.__file__ == str(COMPILED)) is not sources.ARE_IMPORTED


@compiled_only
def test_the_simulation_finds_nothing_wrong_with_what_is_compiled() -> None:
    shown = said("-m", "shmbroker.netbridge.simulation", "run", "--seeds", SEEDS)
    assert f"{SEEDS} seeds" in shown
    assert "nothing is wrong" in shown


def test_a_module_and_what_it_imports_decide_whether_it_is_compiled_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept for these sources is taken; after a change it would have to be made."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("shmbroker.ipc.build.compiled._compile", lambda *_: None)
    package = tmp_path / "src" / "shmbroker"
    package.mkdir(parents=True)
    (package / "low.py").write_text("LEAST = 1\n")
    (package / "beside.py").write_text("")
    module = package / "high.py"
    module.write_text("from shmbroker.low import LEAST\nMOST = LEAST + 1\n")
    asked = ["src/shmbroker/high.py"]

    first = kept_folder(tmp_path, asked)
    assert first.is_dir()
    (package / "beside.py").write_text("NOT_IMPORTED = 1\n")
    assert kept_folder(tmp_path, asked) == first
    (package / "low.py").write_text("LEAST = 2\n")
    second = kept_folder(tmp_path, asked)
    module.write_text("from shmbroker.low import LEAST\nMOST = LEAST + 2\n")
    assert len({first, second, kept_folder(tmp_path, asked)}) == 3
