"""The waits of a sleeper: the list for C, and which of them are worth trying."""

from __future__ import annotations

from typing import Any

from shmbroker.core.codes import EMPTY
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import error_for
from shmbroker.ipc.base.timeout import FOREVER

SLICE_NS = 100_000_000
"""After so long without news, C repairs what the dead have left."""


class Waits:
    """Belongs to the sleeper's thread."""

    def __init__(self) -> None:
        self._waits: dict[int, tuple[Any, int, int]] = {}
        self._array: Any = None

    def add(self, ticket: int, queue: Any, position: int, returned: int) -> None:
        self._waits[ticket] = (queue, position, returned)
        self._array = None

    def remove(self, ticket: int, queue: Any, position: int) -> None:
        """Nobody waits for it any more.

        A wake-up may have come for it meanwhile, also one that we have reported already: it goes
        to others, if there is something for them.
        """
        self._drop(ticket)
        lib.sb_pass_on(queue, position)

    @property
    def tickets(self) -> list[int]:
        return list(self._waits)

    def remove_all(self) -> None:
        for ticket, (queue, position, _) in list(self._waits.items()):
            self.remove(ticket, queue, position)

    def _drop(self, ticket: int) -> None:
        self._array = None
        self._waits.pop(ticket, None)

    def sleep(self, control: Any, seen: int) -> list[int]:
        """Sleep until something is worth trying, and is no longer waited for; or for a while."""
        if self._array is None:
            waits = [(*each, EMPTY) for each in self._waits.values()]
            self._array = ffi.new("sb_wait[]", waits)
        timeout_ns = SLICE_NS if self._waits else FOREVER
        array = self._array
        ready = lib.sb_wait_any(array, len(self._waits), control, seen, timeout_ns)
        if ready < 0:
            raise error_for(ready, "waiting", ffi.errno, detail_of(ready))
        if ready == 0:
            return []
        rung = [
            ticket for ticket, wait in zip(self._waits, array, strict=True) if wait.code != EMPTY
        ]
        for ticket in rung:
            self._drop(ticket)
        return rung
