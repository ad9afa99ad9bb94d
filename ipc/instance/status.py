"""What an instance says of itself, for others to read: in run/ of its folder.

lock     locked for as long as it runs
status   JSON, replaced at each change of state
"""

from __future__ import annotations

import os
import select
import signal
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.errors import Error, InUse
from shmbroker.ipc.instance import ofd
from shmbroker.ipc.instance.process import Process, of_fields
from shmbroker.ipc.instance.watch import Watch
from shmbroker.ipc.instance.whole import check_is_file, read_whole, write_whole

RUN: Final = "run"
DOWN: Final = "not running"


class NotRunning(Error):
    """Nobody runs this instance."""


@dataclass(frozen=True, slots=True)
class Status:
    state: str = DOWN
    is_announced: bool = False
    epoch: int = 0
    why: str = ""
    process: Process | None = None


def read(folder: Path) -> Status:
    """Of the instance in a folder; its last words if it runs no more."""
    found = told(read_whole(folder / RUN / "status"))
    if is_running(folder):
        is_of_before = found.process is None or not found.process.may_run
        return Status("starting") if is_of_before else found
    ended = found.state in ("stopped", "failed")
    return replace(found, state=found.state if ended else DOWN, process=None)


def told(content: dict[str, Any]) -> Status:
    """Nothing that it says if one thing is not what it should be."""
    try:
        found = Status(process=of_fields(content.pop("process", None)), **content)
    except TypeError:
        return Status()
    kinds = {"state": str, "is_announced": bool, "epoch": int, "why": str}
    is_good = all(type(getattr(found, name)) is kind for name, kind in kinds.items())
    return found if is_good else Status()


def is_running(folder: Path) -> bool:
    try:
        # not for writing: closing it would wake who watches the folder, us among them
        file = os.open(folder / RUN / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return ofd.is_locked(file, 0)
    finally:
        os.close(file)


def wait_for(folder: Path, state: str, timeout: float | None) -> Status | None:
    """As soon as it says that it is in this state; None if it does not in time."""
    ends_at = None if timeout is None else time.monotonic() + timeout
    (folder / RUN).mkdir(exist_ok=True, mode=0o700)
    watch = Watch(folder / RUN)
    try:
        while (found := read(folder)).state != state:
            left = None if ends_at is None else ends_at - time.monotonic()
            if left is not None and left <= 0:
                return None
            watch.wait(left)
        return found
    finally:
        watch.close()


def signalled(folder: Path, number: signal.Signals, timeout: float | None) -> bool:
    """Whether the instance has ended, within this time, after it was sent a signal."""
    found = read(folder)
    file = found.process.descriptor() if found.process else None
    if file is None:
        raise NotRunning(f"instance {folder} does not run on this host")
    try:
        signal.pidfd_send_signal(file, number)
        return bool(select.select([file], [], [], timeout)[0])
    finally:
        os.close(file)


class Sign:
    """What a running instance shows."""

    def __init__(self, folder: Path) -> None:
        """InUse if it runs already."""
        run = folder / RUN
        run.mkdir(exist_ok=True, mode=0o700)
        self._path = run / "status"
        for name in ("lock", "status", "rings"):
            check_is_file(run / name)
        self._lock = os.open(run / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not ofd.try_lock(self._lock, 0):
            os.close(self._lock)
            raise InUse(f"instance {folder} runs already: shmbroker status {folder}")

    def show(self, status: Status) -> None:
        write_whole(self._path, asdict(status))

    def close(self) -> None:
        os.close(self._lock)
