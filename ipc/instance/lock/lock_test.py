"""Whether locks in a folder do what a pair relies on.

On some file systems, or with some mount options, every lock is granted: then both would be live.
"""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.errors import SystemRefused
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.instance.lock import ofd

GRANTED, REFUSED, FAILED = 0, 1, 2
"""FAILED, and behind it the number of the error."""
OF_THE_PROCESS: Final = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
"""They say nothing about locks."""


class LocksDoNotWork(SystemRefused):
    """The file system of a store does not keep two from locking the same byte."""


def answer_of_child(path: str) -> int:
    """Whether another process gets the lock."""
    child = os.fork()
    if child == 0:
        answer = FAILED
        try:
            file = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            answer = GRANTED if ofd.try_lock(file, 0) else REFUSED
        except OSError as error:
            answer = FAILED + (error.errno or 0)
        finally:
            os._exit(answer)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def complaint(path: str) -> str | None:
    first = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    second = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if not ofd.try_lock(first, 0):
            return "a lock that nobody has is refused"
        if ofd.try_lock(second, 0):
            return "two descriptors of one process hold the same lock"
        if (answer := answer_of_child(path)) > FAILED:
            raise OSError(answer - FAILED, os.strerror(answer - FAILED), path)
        if answer != REFUSED:
            return (
                "two processes hold the same lock"
                if answer == GRANTED
                else "another process cannot lock at all"
            )
        ofd.unlock(first, 0)
        if answer_of_child(path) != GRANTED:
            return "a lock that was let go is refused to another process"
        return None if ofd.try_lock(second, 0) else "a lock outlives the process that had it"
    finally:
        os.close(first)
        os.close(second)


def check(folder: Path) -> None:
    """LocksDoNotWork if two could be live in this folder.  Forks: before there are threads."""
    try:
        file, path = tempfile.mkstemp(prefix=".lock-test-", dir=folder)
    except OSError as error:
        raise SystemRefused(f"store {told(error)}") from error
    try:
        os.close(file)
        found = complaint(path)
    except OSError as error:
        if error.errno in OF_THE_PROCESS:
            raise SystemRefused(told(error)) from error
        found = f"locking fails: {error.strerror}"
    finally:
        Path(path).unlink()
    if found:
        raise LocksDoNotWork(
            f"store {folder}: locks do not work there ({found}), so two could be live at once; "
            "put it on a local disk, or on NFS with locking (no nolock, no local_lock), or let a "
            'database say who is live (store.lock = "sql")'
        )
