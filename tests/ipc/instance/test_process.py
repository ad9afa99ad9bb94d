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


def test_who_has_ended_and_whose_number_is_that_of_a_thread_has_ended() -> None:
    goes_on = threading.Event()
    thread = threading.Thread(target=goes_on.wait)
    thread.start()
    try:
        assert thread.native_id is not None
        former = process.Process(thread.native_id, 1, process.boot(), process.namespace())
        assert former.has_ended
        assert not former.kill()
    finally:
        goes_on.set()
        thread.join()


def test_a_name_of_a_process_is_any_bytes() -> None:
    """The kernel cuts it off after 15 bytes, also within a letter."""
    name, started = Path("/proc/self/comm"), process.started(os.getpid())
    before = name.read_bytes()
    name.write_bytes(b"gr\xc3")
    try:
        assert process.started(os.getpid()) == started
        assert not process.stands_still(os.getpid())
    finally:
        name.write_bytes(before.strip())


@pytest.mark.usefixtures("many_files")
def test_a_folder_is_watched_by_who_has_many_files_open(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    assert not watch.wait(-0.001), "what is left of a time-out may just be over"
    (tmp_path / "new").write_text("x")
    assert watch.wait(60)
    watch.close()
