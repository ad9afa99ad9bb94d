"""The beat: shows a backup on the same host that the live's journaler works.

    bytes 0-7    when its last turn began, in monotonic nanoseconds; the journaler writes it itself
    bytes 8-15   the epoch that this is about; 0 if it does not work, or not yet

It lies in /dev/shm with the vhost: a store on a disk would have to write it again and again.  It is
made as segments are: without a name, and named when it is whole.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path
from typing import Final

from shmbroker.ipc.base import trust
from shmbroker.ipc.base.errors import Untrusted

BYTES: Final = 16


def path_of(vhost: str) -> Path:
    return Path(f"/dev/shm/shmbroker.{vhost}.beat")


class Beat:
    """Of the live itself."""

    def __init__(self, vhost: str) -> None:
        path = path_of(vhost)
        file = os.open(path.parent, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, trust.PRIVATE_MODE)
        try:
            os.fchmod(file, trust.PRIVATE_MODE)
            os.posix_fallocate(file, 0, BYTES)
            self.memory = mmap.mmap(file, BYTES)
            give_name(file, path)
        finally:
            os.close(file)

    @classmethod
    def unseen(cls) -> Beat:
        """One that nobody can look at: there is no room in /dev/shm, or no right to it."""
        made = cls.__new__(cls)
        made.memory = mmap.mmap(-1, BYTES)
        return made

    def begin(self, epoch: int) -> None:
        struct.pack_into("qq", self.memory, 0, time.monotonic_ns(), epoch)

    def end(self) -> None:
        struct.pack_into("q", self.memory, 8, 0)


def give_name(file: int, path: Path) -> None:
    """Instead of what is there, in one step: who looks finds the one or the other.

    Untrusted if what is there is another user's, and stays.
    """
    new = path.with_name(f"{path.name}.new")
    with trust.untrusted(new):
        new.unlink(missing_ok=True)  # of one that died here
        # without a directory Python does not follow the link
        os.link(f"/proc/self/fd/{file}", new, src_dir_fd=file)
    with trust.untrusted(path):
        try:
            new.rename(path)
        except OSError:
            new.unlink()
            raise


def age_of(vhost: str, epoch: int) -> float | None:
    """Seconds since the last turn of this epoch's journaler; None if it is not told here."""
    try:
        content = trust.content_of(path_of(vhost), trust.SEGMENTS)
    except (OSError, Untrusted):
        return None
    if len(content) != BYTES:
        return None
    at, told = struct.unpack("qq", content)
    return (time.monotonic_ns() - at) / 1e9 if told == epoch else None
