"""Processes that are told from others of the same number, by a broker that has many files open."""

from __future__ import annotations

import os
import resource
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from shmbroker.ipc.instance import process
from shmbroker.ipc.instance.watch import Watch

SELECT_MAX = 1024
"""So many descriptors fit into what select() takes."""


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 2 * SELECT_MAX), hard), hard))
    files = [os.open("/dev/null", os.O_RDONLY) for _ in range(SELECT_MAX)]
    yield
    for each in files:
        os.close(each)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def of_number(pid: int) -> process.Process:
    return process.Process(pid, process.started(pid), process.boot(), process.namespace())


@pytest.mark.usefixtures("many_files")
def test_a_death_is_seen_by_who_has_many_files_open() -> None:
    child = subprocess.Popen(["sleep", "1h"])
    try:
        other = of_number(child.pid)
        assert not other.has_ended
        assert other.kill()
        assert other.has_ended, "nobody has waited for it yet"
        other.wait_for_death()
    finally:
        child.kill()
        child.wait()
    assert other.has_ended


@pytest.mark.usefixtures("many_files")
def test_a_folder_is_watched_by_who_has_many_files_open(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    assert not watch.wait(-0.001), "what is left of a time-out may just be over"
    (tmp_path / "new").write_text("x")
    assert watch.wait(60)
    watch.close()
