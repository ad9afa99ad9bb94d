"""The sleeper: one thread that sleeps in the kernel until a ring has news for the network thread.

A ticket is one order to watch a bell; it is told of once.  Orders reach it through a deque and a
word that ends its sleep; what it has to tell goes through `call`, into the network thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.queue.waits import Waits

ROOM: int = lib.SB_ROOM
ANY: int = lib.SB_ANY_NUMBER
CONFIRMED: int = lib.SB_CONFIRMED


class Sleeper:
    """All of it but _run is of the network thread."""

    def __init__(self, call: Callable[[Callable[[], None]], None]) -> None:
        self._call = call
        self._watched: dict[int, Callable[[], None]] = {}
        self._tickets = count(1)
        self._orders: deque[tuple[bool, int, Any, int, int]] = deque()
        self._control = ffi.new("int64_t *")
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="shmbroker-net-sleeper", daemon=True)
        self._thread.start()

    def watch(self, queue: Any, position: int, returned: int, told: Callable[[], None]) -> int:
        """Call `told` once it is worth trying: the ticket of this order."""
        ticket = next(self._tickets)
        self._watched[ticket] = told
        self._tell(True, ticket, queue, position, returned)
        return ticket

    def forget(self, ticket: int, queue: Any, position: int, returned: int) -> None:
        """Nobody waits for this any more."""
        if self._watched.pop(ticket, None) is not None:
            self._tell(False, ticket, queue, position, returned)

    def close(self) -> None:
        self._is_stopped = True
        self._nudge()
        self._thread.join()

    def _tell(self, *order: Any) -> None:
        self._orders.append(order)
        self._nudge()

    def _nudge(self) -> None:
        self._control[0] += 1
        lib.sb_system_wake(int(ffi.cast("intptr_t", self._control)), 1)

    def _ring(self, tickets: list[int]) -> None:
        for ticket in tickets:
            told = self._watched.pop(ticket, None)
            if told is not None:
                told()

    # --- in the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        waits = Waits()
        while not self._is_stopped:
            seen = self._control[0]  # before we look for orders: a later one ends our sleep
            while self._orders:
                is_wanted, ticket, queue, position, returned = self._orders.popleft()
                if is_wanted:
                    waits.add(ticket, queue, position, returned)
                else:
                    waits.remove(ticket, queue, position)
            try:
                rung = waits.sleep(self._control, seen)
            except Error:  # all of them try, and who cannot go on finds out
                rung = waits.tickets
                waits.remove_all()
            if rung:
                self._call(partial(self._ring, rung))
        waits.remove_all()
