"""The status of an instance, in run/ of its folder.

lock     locked for as long as it runs
status   JSON, replaced at each change of state
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.base import trust
from shmbroker.ipc.base.errors import Error, InUse, Untrusted
from shmbroker.ipc.instance.lock import ofd
from shmbroker.ipc.instance.process import Process, of_fields, this
from shmbroker.ipc.instance.readable import is_readable
from shmbroker.ipc.instance.watch import Watch
from shmbroker.ipc.instance.whole import check_is_file, read_whole, write_whole

RUN: Final = "run"
DOWN: Final = "not running"
STARTING: Final = "starting"


class NotRunning(Error):
    """Nobody runs this instance."""


@dataclass(frozen=True, slots=True)
class Status:
    state: str = DOWN
    is_announced: bool = False
    epoch: int = 0
    why: str = ""
    process: Process | None = None
    replication: str = ""
    """Of a member of a replicated node."""


def read(folder: Path) -> Status:
    """Of the instance in a folder; its last words if it runs no more."""
    found = shown(folder / RUN / "status")
    if is_running(folder):
        is_of_before = found.process is None or not found.process.may_run
        return Status(STARTING) if is_of_before else found
    ended = found.state in ("stopped", "failed")
    state = found.state if ended else DOWN
    return replace(found, state=state, is_announced=False, process=None)


def shown(path: Path) -> Status:
    """What the file says, whether that process runs or not."""
    return told(read_whole(path, trust.seen_files()))


def told(content: dict[str, Any]) -> Status:
    """Nothing that it says if one thing is not what it should be."""
    try:
        found = Status(process=of_fields(content.pop("process", None)), **content)
    except TypeError:
        return Status()
    kinds = {"state": str, "is_announced": bool, "epoch": int, "why": str,
             "replication": str}  # fmt: skip
    is_good = all(type(getattr(found, name)) is kind for name, kind in kinds.items())
    return found if is_good else Status()


def is_running(folder: Path) -> bool:
    try:
        # not for writing: closing it would wake who watches the folder, us among them
        file = trust.opened(folder / RUN / "lock", os.O_RDONLY, trust.seen_files())
    except FileNotFoundError:
        return False
    try:
        return ofd.is_locked(file, 0)
    finally:
        os.close(file)


def wait_for(folder: Path, state: str, timeout: float | None) -> Status | None:
    """As soon as it says that it is in this state; None if it does not in time, or fails."""
    ends_at = None if timeout is None else time.monotonic() + timeout
    trust.make_folder(folder / RUN)
    watch = Watch(folder / RUN)
    try:
        # a failure of a former run says nothing: this one may be starting
        file = folder / RUN / "status"
        first = shown(file)
        has_run = False
        while (found := read(folder)).state != state:
            has_run |= found.process is not None
            left = None if ends_at is None else ends_at - time.monotonic()
            if left is not None and left <= 0:
                return None
            if found.state == "failed":
                now = shown(file)  # not of one that has begun since we have read
                if now.state == "failed" and (has_run or now != first):
                    return None
            watch.wait(left)
        return found
    finally:
        watch.close()


def begun(folder: Path, timeout: float) -> Status | None:
    """As soon as one that runs, or starts, says which process it is: from then on it hears orders.
    None if it does not in time; not running if it ends before."""
    ends_at = time.monotonic() + timeout
    trust.make_folder(folder / RUN)
    watch = Watch(folder / RUN)
    try:
        while (found := read(folder)).state == STARTING and found.process is None:
            if (left := ends_at - time.monotonic()) <= 0:
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
        check_user(folder, found)
        signal.pidfd_send_signal(file, number)
        return is_readable(file, timeout)
    finally:
        os.close(file)


def ended(folder: Path, timeout: float | None) -> bool:
    """Whether the instance has ended, within this time."""
    found = read(folder)
    file = found.process.descriptor() if found.process else None
    if file is None:
        return True
    try:
        return is_readable(file, timeout)
    finally:
        os.close(file)


def check_user(folder: Path, found: Status) -> None:
    """Untrusted if the status names a process of another user than the one whose status it is."""
    assert found.process is not None
    whose = (folder / RUN / "status").stat().st_uid
    runs_as = found.process.user
    if runs_as not in (None, whose):
        raise Untrusted(
            f"{folder / RUN / 'status'} belongs to user {whose}, and names process "
            f"{found.process.pid} of user {runs_as}: it is not signalled"
        )


class Sign:
    """What a running instance shows."""

    def __init__(self, folder: Path) -> None:
        """InUse if it runs already."""
        run = folder / RUN
        trust.make_folder(run)
        self._path = run / "status"
        for name in ("lock", "status", "rings"):
            check_is_file(run / name)
        self._lock = trust.opened(run / "lock", os.O_RDWR | os.O_CREAT)
        if not ofd.try_lock(self._lock, 0):
            os.close(self._lock)
            raise InUse(f"instance {folder} runs already: shmbroker status {folder}")

    def show(self, status: Status) -> None:
        write_whole(self._path, asdict(status))

    def failed(self, why: str) -> None:
        """It could not start, of which this is the first and last that it shows."""
        with suppress(Error, OSError):
            epoch = shown(self._path).epoch
            self.show(Status("failed", epoch=epoch, why=why, process=this()))

    def close(self) -> None:
        os.close(self._lock)


def could_not_start(folder: Path, why: str) -> None:
    """Of a process that has no Sign yet; nothing if another one runs this instance, or if this is
    another user's, who could not write there later."""
    with suppress(Error, OSError):
        if folder.stat().st_uid == os.geteuid():
            sign = Sign(folder)
            sign.failed(why)
            sign.close()
