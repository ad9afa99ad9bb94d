"""What a run leaves behind is ended, whatever ended the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

LEAVES = """
import os, subprocess, sys
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                        start_new_session=True)
name = f"/dev/shm/shmbroker.test-{os.getpid()}-left.arena"
open(name, "w").close()
print(left.pid, name, flush=True)
"""
PATIENCE = 60


def run(*command: str) -> subprocess.CompletedProcess[str]:
    whole = [sys.executable, "-m", "tests.support.left_behind", *command]
    return subprocess.run(whole, capture_output=True, text=True, timeout=PATIENCE, check=False)


def ran(then: str) -> tuple[int, int, Path, str]:
    """Exit code, pid and name of what was left, and what was told."""
    done = run(sys.executable, "-c", LEAVES + then)
    pid, name = done.stdout.split()
    return done.returncode, int(pid), Path(name), done.stderr


@pytest.mark.parametrize(
    ("then", "code"),
    [("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", 128 + signal.SIGKILL)],
    ids=["ended", "killed"],
)
def test_processes_and_names_are_gone(then: str, code: int) -> None:
    ended, pid, name, told = ran(then)
    assert ended == code
    assert not Path("/proc", str(pid)).exists()
    assert not name.exists()
    assert f"left behind, and ended: {pid} " in told


def test_nothing_is_told_where_nothing_is_left() -> None:
    done = run("true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_names_of_those_who_live_stay() -> None:
    name = Path(f"/dev/shm/shmbroker.test-{os.getpid()}-lives.arena")
    name.touch()
    try:
        assert run("true").returncode == 0
        assert name.exists()
    finally:
        name.unlink()
