"""What an instance shows of itself, and how others read it."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

import pytest

from shmbroker.ipc.base.errors import SystemRefused
from shmbroker.ipc.instance import full_disk, status, watch
from shmbroker.ipc.instance.watch import Watch


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


class Refusing:
    """inotify of a user who has reached a limit."""

    def __init__(self, begins: int, adds: int) -> None:
        self.begins, self.adds = begins, adds

    def inotify_init1(self, _flags: int) -> int:
        ctypes.set_errno(self.begins)
        return -1 if self.begins else os.open("/dev/null", os.O_RDONLY)

    def inotify_add_watch(self, _file: int, _folder: bytes, _wanted: int) -> int:
        ctypes.set_errno(self.adds)
        return -1


@pytest.mark.parametrize(
    ("begins", "adds", "limit"),
    [(errno.EMFILE, 0, "max_user_instances"), (0, errno.ENOSPC, "max_user_watches")],
)
def test_a_limit_of_inotify_is_named_and_is_no_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: int, adds: int, limit: str
) -> None:
    monkeypatch.setattr(watch, "_libc", Refusing(begins, adds))
    before = sorted(Path("/proc/self/fd").iterdir())
    with pytest.raises(SystemRefused, match=f"fs.inotify.{limit}") as caught:
        Watch(tmp_path)
    assert not full_disk.is_full(caught.value)
    assert sorted(Path("/proc/self/fd").iterdir()) == before
