"""Memory for a batch of records, of which only what is used takes room."""

from __future__ import annotations

from mmap import mmap

from shmbroker.ipc._native import ffi


class Room:
    def __init__(self, size: int) -> None:
        self.size = 0
        self.make(size)

    def make(self, size: int) -> None:
        """Room for so much; what was there is gone if it was smaller."""
        if size > self.size:
            try:
                memory = mmap(-1, size)
            except OSError as error:
                raise MemoryError from error
            self.size = size
            self.view = memoryview(memory)
            self._held = ffi.from_buffer(memory)
            self.address = int(ffi.cast("intptr_t", self._held))
