"""Watching folders for changes: by inotify where it works, else by looking each second."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.errors import SystemRefused
from shmbroker.ipc.instance.readable import is_readable

IN_MODIFY: Final = 0x2
IN_CLOSE_WRITE: Final = 0x8
IN_MOVED_TO: Final = 0x80
REMOTE_SECONDS: Final = 1.0

_libc = ctypes.CDLL(None, use_errno=True)


def _refused(folder: Path, limits: dict[int, str]) -> Exception:
    """ENOSPC is no full disk here, and waiting does not help."""
    code = ctypes.get_errno()
    if limit := limits.get(code):
        return SystemRefused(
            f"{folder} cannot be watched: this user watches as much as fs.inotify.{limit} allows: "
            f"raise it (sysctl), or end a program that watches files"
        )
    return OSError(code, os.strerror(code), str(folder))


def _may_open() -> bool:
    """Another file: then it was not the limit of our process."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


class Watch:
    def __init__(self, folder: Path, *, is_remote: bool = False) -> None:
        """`is_remote`: other hosts change it too, of which our kernel does not know."""
        self.timeout = REMOTE_SECONDS if is_remote else None
        self.file = _libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        wanted = IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO
        if self.file < 0:
            raise _refused(folder, {errno.EMFILE: "max_user_instances"} if _may_open() else {})
        if _libc.inotify_add_watch(self.file, os.fsencode(folder), wanted) < 0:
            refused = _refused(folder, {errno.ENOSPC: "max_user_watches"})
            os.close(self.file)
            raise refused

    def wait(self, timeout: float | None = None) -> bool:
        """Until something may have changed; False if nothing did for so many seconds."""
        shortest = min((each for each in (timeout, self.timeout) if each is not None), default=None)
        ready = is_readable(self.file, shortest)
        if ready:
            os.read(self.file, 1 << 16)
        return ready or shortest == self.timeout

    def close(self) -> None:
        os.close(self.file)
