"""What an instance shows of itself, and how others read it."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from shmbroker.ipc.base.errors import SystemRefused
from shmbroker.ipc.instance import full_disk, process, status, watch
from shmbroker.ipc.instance.watch import Watch

REFUSING = "inotify that refuses"


def test_reading_the_status_wakes_nobody_who_waits_for_it_to_change(tmp_path: Path) -> None:
    """Who waits reads it after each change: if reading were one, waiting would be spinning."""
    shown = status.Sign(tmp_path)
    shown.show(status.Status("passive"))
    watch = Watch(tmp_path / status.RUN)
    try:
        status.read(tmp_path)
        assert not watch.wait(0.2)
    finally:
        watch.close()
        shown.close()


def test_who_runs_no_more_is_not_announced(tmp_path: Path) -> None:
    sign = status.Sign(tmp_path)
    sign.show(status.Status("passive", is_announced=True, epoch=3))
    sign.close()
    assert status.read(tmp_path) == status.Status(status.DOWN, epoch=3)


def test_a_wait_ends_when_it_fails_as_the_time_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_before, ours = replace(process.this(), pid=1), process.this()

    def fails(as_process: process.Process) -> None:
        monkeypatch.setattr(status, "this", lambda: as_process)
        status.could_not_start(tmp_path, "no password")

    fails(of_before)
    assert status.read(tmp_path) == status.Status("failed", why="no password")
    waits = iter((lambda: None, lambda: fails(ours)))
    monkeypatch.setattr(Watch, "wait", lambda _watch, _left: next(waits)())
    assert status.wait_for(tmp_path, "live", timeout=None) is None
    assert next(waits, None) is None


def test_a_wait_goes_on_when_the_next_one_begins_while_it_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status.could_not_start(tmp_path, "no password")
    of_before, signs = status.read(tmp_path), list[status.Sign]()

    def reads(folder: Path) -> status.Status:
        if signs:
            return read(folder)
        signs.append(status.Sign(folder))
        signs[0].show(status.Status("starting", process=process.this()))
        return of_before

    read = status.read
    monkeypatch.setattr(status, "read", reads)
    monkeypatch.setattr(
        Watch, "wait",
        lambda _watch, _left: signs[0].show(status.Status("live", process=process.this())),
    )  # fmt: skip
    found = status.wait_for(tmp_path, "live", timeout=None)
    signs[0].close()
    assert found is not None


def test_one_that_runs_has_not_failed_as_another_could_not_start(tmp_path: Path) -> None:
    sign = status.Sign(tmp_path)
    sign.show(status.Status("live", epoch=3, process=process.this()))
    status.could_not_start(tmp_path, "no password")
    assert status.read(tmp_path).state == "live"
    sign.close()


class Refusing:
    """inotify of a user who has reached a limit."""

    def __init__(self, begins: int, adds: int) -> None:
        self.begins, self.adds = begins, adds

    def inotify_init1(self, _flags: int) -> int:
        ctypes.set_errno(self.begins)
        return -1 if self.begins else os.memfd_create(REFUSING)

    def inotify_add_watch(self, _file: int, _folder: bytes, _wanted: int) -> int:
        ctypes.set_errno(self.adds)
        return -1


def open_here() -> Iterator[str]:
    """What the files are that this process has open; threads of other tests may close some."""
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            yield str(each.readlink())


@pytest.mark.parametrize(
    ("begins", "adds", "limit"),
    [(errno.EMFILE, 0, "max_user_instances"), (0, errno.ENOSPC, "max_user_watches")],
)
def test_a_limit_of_inotify_is_named_and_is_no_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: int, adds: int, limit: str
) -> None:
    monkeypatch.setattr(watch, "_libc", Refusing(begins, adds))
    with pytest.raises(SystemRefused, match=f"fs.inotify.{limit}") as caught:
        Watch(tmp_path)
    assert not full_disk.is_full(caught.value)
    assert not [each for each in open_here() if REFUSING in each or str(tmp_path) in each]
