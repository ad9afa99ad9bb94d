"""Bytes that end where readable memory ends: who reads one more is killed."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

from shmbroker.ipc._native import ffi

PROTECTION_NONE = 0


class Fenced:
    """Memory for one span, followed by a page that nobody may read."""

    def __init__(self, size_max: int = mmap.PAGESIZE) -> None:
        self._end = (size_max + mmap.PAGESIZE - 1) & -mmap.PAGESIZE
        self._memory = mmap.mmap(-1, self._end + mmap.PAGESIZE)
        self._view = ffi.from_buffer(self._memory)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        fence = int(ffi.cast("intptr_t", self._view)) + self._end
        code = protect(ctypes.c_void_p(fence), ctypes.c_size_t(mmap.PAGESIZE), PROTECTION_NONE)
        assert code == 0, ctypes.get_errno()

    def hold(self, content: bytes) -> Any:
        """Put these bytes right before the fence; where they are."""
        start = self._end - len(content)
        self._memory[start : self._end] = content
        return self._view + start
