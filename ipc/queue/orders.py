"""What a sleeper is to wait for: handed to its thread through a deque, and a word that wakes it."""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import Any

from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.queue.waits import Waits


class Orders:
    """All of it but sleep and the waits is of the thread that gives them."""

    def __init__(self) -> None:
        self.tickets = count(1)
        """One for each order to watch a bell."""
        self.waits = Waits()
        self._given: deque[tuple[bool, int, Any, int, int]] = deque()
        self._control = ffi.new("int64_t *")

    def give(self, is_wanted: bool, ticket: int, queue: Any, position: int, returned: int) -> None:
        self._given.append((is_wanted, ticket, queue, position, returned))
        self.nudge()

    def nudge(self) -> None:
        """End the sleep."""
        self._control[0] += 1
        lib.sb_system_wake(int(ffi.cast("intptr_t", self._control)), 1)

    def sleep(self) -> list[int]:
        """Until some are worth trying, and are no longer waited for; or for a while."""
        seen = self._control[0]  # before we look for orders: a later one ends our sleep
        while self._given:
            is_wanted, ticket, queue, position, returned = self._given.popleft()
            if is_wanted:
                self.waits.add(ticket, queue, position, returned)
            else:
                self.waits.remove(ticket, queue, position)
        return self.waits.sleep(self._control, seen)
