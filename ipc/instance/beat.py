"""That the journaler of a live works, for a backup on the same host to see.

    bytes 0-7    when its last turn began, in monotonic nanoseconds; the journaler writes it itself
    bytes 8-15   the epoch that this is about; 0 if it does not work, or not yet

It lies in /dev/shm with the vhost: a store on a disk would have to write it again and again.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path
from typing import Final

BYTES: Final = 16


def path_of(vhost: str) -> Path:
    return Path(f"/dev/shm/shmbroker.{vhost}.beat")


class Beat:
    """Of the live itself."""

    def __init__(self, vhost: str) -> None:
        file = os.open(path_of(vhost), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(file, 0, BYTES)
            self.memory = mmap.mmap(file, BYTES)
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


def age_of(vhost: str, epoch: int) -> float | None:
    """Seconds since the last turn of this epoch's journaler; None if it is not told here."""
    try:
        content = path_of(vhost).read_bytes()
    except OSError:
        return None
    if len(content) != BYTES:
        return None
    at, told = struct.unpack("qq", content)
    return (time.monotonic_ns() - at) / 1e9 if told == epoch else None
