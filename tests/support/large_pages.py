"""The memory of this process in pages of 2 MiB: a fork copies a hundred entries, not 50,000.

A worker that has collected all tests has 200 MB, and makes thousands of children.  With pages of
4 KiB fork, exec and exit of one take 10 ms of processor, with large ones 3 ms.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Final

PAGE_BYTES: Final = 2 << 20
MADV_COLLAPSE: Final = 25
"""Of Linux 6.1.  An older one refuses it, and all is as it was."""


def collapse() -> None:
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, access, _, device, *_ = line.split()
        first, end = (int(each, 16) for each in span.split("-"))
        first = -(-first // PAGE_BYTES) * PAGE_BYTES
        if access == "rw-p" and device == "00:00" and first + PAGE_BYTES <= end:
            madvise(first, (end - first) // PAGE_BYTES * PAGE_BYTES, MADV_COLLAPSE)
