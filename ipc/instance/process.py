"""A process by pid and start time, and a descriptor of exactly that one."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shmbroker.ipc.instance.readable import is_readable


@dataclass(frozen=True, slots=True)
class Process:
    """A number alone may be another process by now, or one of another container or machine."""

    pid: int
    started: int
    """In ticks since the machine was."""
    boot: str
    namespace: str

    @property
    def is_of_this_host(self) -> bool:
        """Whether its number means here what it means there."""
        return (self.boot, self.namespace) == (boot(), namespace())

    @property
    def may_run(self) -> bool:
        """Not known to have ended."""
        return not self.is_of_this_host or started(self.pid) == self.started

    def descriptor(self) -> int | None:
        """A pidfd; None if it runs no more, or elsewhere.  The caller closes it."""
        if not self.is_of_this_host:
            return None
        try:
            file = os.pidfd_open(self.pid)
        except OSError:
            if self.may_run:
                raise
            return None  # there is none of this number, or it is that of a thread by now
        if started(self.pid) != self.started:
            os.close(file)
            return None
        return file

    @property
    def user(self) -> int | None:
        """Whose process it is; None if it runs no more."""
        try:
            return Path(f"/proc/{self.pid}").stat().st_uid
        except FileNotFoundError:
            return None

    @property
    def has_ended(self) -> bool:
        """Known to: it writes nothing any more."""
        if not self.is_of_this_host:
            return False
        if (file := self.descriptor()) is None:
            return True
        try:
            return is_readable(file, 0)
        finally:
            os.close(file)

    def kill(self) -> bool:
        """And wait for its death; False if it runs no more, or elsewhere."""
        if (file := self.descriptor()) is None:
            return False
        try:
            signal.pidfd_send_signal(file, signal.SIGKILL)
            return is_readable(file)
        finally:
            os.close(file)

    def wait_for_death(self) -> None:
        """Of one that is dying: its locks fall one after the other, as its files are closed."""
        if (file := self.descriptor()) is not None:
            is_readable(file)
            os.close(file)


def of_fields(fields: Any) -> Process | None:
    """As it was told in JSON; None if nobody was.  TypeError if that is no process."""
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise TypeError("a process is told by its fields")
    found = Process(**fields)
    kinds = {"pid": int, "started": int, "boot": str, "namespace": str}
    if not all(type(getattr(found, name)) is kind for name, kind in kinds.items()):
        raise TypeError("a process has other fields")
    return found


def told_in(shown: Mapping[str, Any]) -> Process | None:
    """What a file in run/ says under `process`; None if that is none."""
    try:
        return of_fields(shown.get("process"))
    except TypeError:
        return None


def this() -> Process:
    return Process(os.getpid(), started(os.getpid()), boot(), namespace())


def memory() -> str:
    """Which shared memory is mounted here: a container may have another one."""
    return f"{boot()} {Path('/dev/shm').stat().st_dev}"


def boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def namespace() -> str:
    return str(Path("/proc/self/ns/pid").readlink())


def started(pid: int) -> int:
    """0 if there is no such process."""
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(line.rpartition(b")")[2].split()[19])


def stands_still(pid: int) -> bool:
    """Whether a signal, or a debugger, has stopped the process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return text.rpartition(b")")[2].split()[0] in (b"T", b"t")
