"""Locks of open file descriptions on single bytes of a file.

They belong to the open file, not to the process: two descriptors of one process exclude each other,
closing another descriptor of the same file drops nothing, and the kernel drops them whatever kills
the process.  A descriptor that a child has inherited holds them too: ours are closed on exec.
"""

from __future__ import annotations

import fcntl
import os
import struct
from typing import Final

F_OFD_GETLK: Final = 36  # the fcntl module does not have them in every build
F_OFD_SETLK: Final = 37
F_OFD_SETLKW: Final = 38
FLOCK: Final = "hhqqi4x"


def _flock(kind: int, byte: int) -> bytes:
    return struct.pack(FLOCK, kind, os.SEEK_SET, byte, 1, 0)


def try_lock(file: int, byte: int) -> bool:
    """Take it unless somebody else has it."""
    try:
        fcntl.fcntl(file, F_OFD_SETLK, _flock(fcntl.F_WRLCK, byte))
    except (BlockingIOError, PermissionError):
        return False
    return True


def lock(file: int, byte: int) -> None:
    """Sleep in the kernel until it is ours."""
    fcntl.fcntl(file, F_OFD_SETLKW, _flock(fcntl.F_WRLCK, byte))


def unlock(file: int, byte: int) -> None:
    fcntl.fcntl(file, F_OFD_SETLK, _flock(fcntl.F_UNLCK, byte))


def is_locked(file: int, byte: int) -> bool:
    """By somebody else."""
    answer = fcntl.fcntl(file, F_OFD_GETLK, _flock(fcntl.F_WRLCK, byte))
    kind: int = struct.unpack(FLOCK, answer)[0]
    return kind != fcntl.F_UNLCK
