"""The kernels as plain Python over a memory of their own, with something to do before each step.

So a test can change the catalog, or die, at every single step of a kernel.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

from shmbroker.core import layout
from shmbroker.core.kernel import bind
from shmbroker.ipc.build.kernels import KERNELS

ROOM_AT = layout.CATALOG_BYTES
ROOM_BYTES = 1 << 16


class Killed(Exception):
    """The kernel got no further."""


class Interpreted:
    """A catalog at address 0, some room behind it, and all kernels as attributes."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, ROOM_AT + ROOM_BYTES)
        self._room = ROOM_AT
        self._interrupt: tuple[int, Callable[[], object]] | None = None
        self._steps = 0
        atomics = {
            "load": self._load,
            "load_acquire": self._load,
            "load_byte": self._load_byte,
            "store": self._store,
            "store_release": self._store,
            "exchange": self._exchange,
            "fetch_add": self._fetch_add,
            "copy": self._copy,
            "fill": self._fill,
            "fence_acquire": lambda: 0,
            "prefetch": lambda address: 0,
            "highest_bit": lambda value: value.bit_length() - 1,
        }
        self._kernels = bind(KERNELS.values(), atomics, lambda kernel, function: function)

    def __getattr__(self, name: str) -> Any:
        return self._kernels[name]

    def place(self, content: bytes) -> int:
        """Put bytes into the room: their address."""
        at = self._room
        self._memory[at : at + len(content)] = content
        self._room += (len(content) + 7) & -8
        return at

    def read(self, at: int, length: int) -> bytes:
        return self._memory[at : at + length]

    def interrupted(self, step: int, what: Callable[[], object], call: Callable[[], int]) -> int:
        """Make a call, and do something else before its step of this number."""
        self._steps, self._interrupt = 0, (step, what)
        try:
            return call()
        finally:
            self._interrupt = None

    def steps(self, call: Callable[[], int]) -> int:
        """How many steps a call takes."""
        self.interrupted(-1, lambda: None, call)
        return self._steps

    def _step(self) -> None:
        if self._interrupt is not None and self._steps == self._interrupt[0]:
            what, self._interrupt = self._interrupt[1], None
            what()
        self._steps += 1

    def _load(self, address: int) -> int:
        self._step()
        assert address >= 0
        assert address % 8 == 0
        word = self._memory[address : address + 8]
        assert len(word) == 8
        return int.from_bytes(word, "little", signed=True)

    def _load_byte(self, address: int) -> int:
        self._step()
        assert address >= 0
        return self._memory[address]

    def _store(self, address: int, value: int) -> int:
        self._step()
        assert address >= 0
        self._memory[address : address + 8] = (value & (1 << 64) - 1).to_bytes(8, "little")
        return value

    # an atomic in two steps is fine: there is only one writer at a time
    def _exchange(self, address: int, value: int) -> int:
        former = self._load(address)
        self._store(address, value)
        return former

    def _fetch_add(self, address: int, value: int) -> int:
        former = self._load(address)
        self._store(address, former + value)
        return former

    def _copy(self, target: int, source: int, length: int) -> int:
        for at in range(0, length, 8):
            self._step()
            size = min(8, length - at)
            self._memory[target + at : target + at + size] = self.read(source + at, size)
        return length

    def _fill(self, target: int, byte: int, length: int) -> int:
        self._step()
        self._memory[target : target + length] = bytes([byte]) * length
        return length
