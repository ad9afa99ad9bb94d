"""What C says about the last error of this thread, beyond its code."""

from __future__ import annotations

from shmbroker.ipc._native import ffi, lib


def detail_of(code: int) -> str:
    """It may quote names from damaged memory, and is cut where it is too long."""
    text: bytes = ffi.string(lib.sb_detail(code))
    return text.decode(errors="replace")
