"""The bare disk: a file that was written over before, as the segments of the journal were, and is
written over again, with a sync after each write. What no journal can be faster than.
"""

import os
import time
from pathlib import Path
from statistics import median

SEGMENT_BYTES = 64 << 20
FRAME_BYTES = 256 << 10
MIB = 1 << 20


class BareFile:
    """Overwritten from its start to its end, and again."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        for at in range(0, SEGMENT_BYTES, MIB):
            os.pwrite(self._file, bytes(MIB), at)
        os.fdatasync(self._file)
        self._at = 0

    def write(self, body: bytes) -> None:
        if self._at + len(body) > SEGMENT_BYTES:
            self._at = 0
        os.pwrite(self._file, body, self._at)
        os.fdatasync(self._file)
        self._at += len(body)

    def stream(self, seconds: float) -> float:
        """Bytes a second, in frames."""
        body, written, before = os.urandom(FRAME_BYTES), 0, time.perf_counter()
        while (spent := time.perf_counter() - before) < seconds:
            self.write(body)
            written += FRAME_BYTES
        return written / spent

    def close(self) -> None:
        os.close(self._file)


def sync_seconds(folder: Path, times: int = 50) -> float:
    """Overwriting a page and syncing it, in the median: what no confirm can be faster than."""
    page, took = bytes(4096), []
    file = os.open(folder / "probe", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.pwrite(file, page * 16, 0)
        os.fsync(file)
        for index in range(times):
            begun = time.monotonic()
            os.pwrite(file, page, len(page) * (index % 16))
            os.fdatasync(file)
            took.append(time.monotonic() - begun)
    finally:
        os.close(file)
    return median(took)
