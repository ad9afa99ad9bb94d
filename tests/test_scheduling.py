"""How tests are given to processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
from tests.support.scheduling import Scheduling

def pytest_xdist_make_scheduler(config, log):
    return Scheduling(config, log)
"""
HEARS_LATE = """
from pathlib import Path
from tests.support.scheduling import Scheduling

class HearsLate(Scheduling):
    def mark_test_complete(self, node, item_index, duration=0):
        if self.registered_collections[node][item_index].endswith("test_before"):
            node.gateway._io.popen.wait(60)
            node.gateway.join(60)
            node._down = False  # as long as its end was not heard of
        super().mark_test_complete(node, item_index, duration)

def pytest_xdist_make_scheduler(config, log):
    return HearsLate(config, log)
"""
ENDS = """
import os
import time
from pathlib import Path

def test_before(): pass

def test_ends():
    with Path("begun").open("a") as file:
        file.write("once ")
    until = time.monotonic() + 60
    while len(list(Path().glob("*.ran"))) < {waits_for} and time.monotonic() < until:
        time.sleep(0.01)
    os._exit(1)

def test_after(): pass
"""
OTHER = """
from pathlib import Path

def test_one(): Path(f"{__name__}.ran").touch()
def test_two(): pass
"""
FILES = 5


@pytest.mark.parametrize(
    ("conftest", "waits_for"),
    [(CONFTEST, 0), (CONFTEST, FILES - 1), (HEARS_LATE, 0)],
    ids=["at once", "after the other's last", "while it is given more"],
)
def test_a_test_in_which_a_process_ends_fails_once(
    tmp_path: Path, conftest: str, waits_for: int
) -> None:
    """As one does that the limit of faulthandler ends.  One file is its process's own next one;
    when the others have run, the other process has ended, and a new one takes what is left."""
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_ends.py").write_text(ENDS.format(waits_for=waits_for))
    for number in range(FILES):
        (tmp_path / f"test_{number}.py").write_text(OTHER)
    root = Path(__file__).parents[1]
    where = ["--rootdir", str(tmp_path), "-o", f"pythonpath={root}", "--import-mode=importlib"]
    spread = ["-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *spread, *where, "."]
    said = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    ).stdout
    assert "1 failed, 12 passed" in said
    assert (tmp_path / "begun").read_text() == "once "
