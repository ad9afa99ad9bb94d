"""The text that C has about the last error of this thread, and the error with it."""

from __future__ import annotations

from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import error_for

BYTES_MAX = 512


def detail_of(code: int) -> str:
    """It may quote names from damaged memory, and is cut where it is too long.

    It is told once: a later failure that has no words of its own is not told with these.
    """
    room = ffi.new("char[]", BYTES_MAX)
    lib.sb_detail_take(code, room, BYTES_MAX)
    text: bytes = ffi.string(room)
    return text.decode(errors="replace")


def checked(code: int, what: str) -> int:
    """The answer of C; its error, if it is one."""
    if code < 0:
        raise error_for(code, what, ffi.errno, detail_of(code))
    return code
