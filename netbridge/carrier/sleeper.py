"""The sleeper: one thread that sleeps in the kernel until a ring has news for the network thread.

A ticket is one order to watch a bell; it is told of once.  Orders reach it through a deque and a
word that ends its sleep; what it has to tell goes through `call`, into the network thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.queue.orders import Orders

ROOM: int = lib.SB_ROOM
ANY: int = lib.SB_ANY_NUMBER
CONFIRMED: int = lib.SB_CONFIRMED


class Sleeper:
    """All of it but _run is of the network thread."""

    def __init__(self, call: Callable[[Callable[[], None]], None]) -> None:
        self._call = call
        self._watched: dict[int, Callable[[], None]] = {}
        self._orders = Orders()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="shmbroker-net-sleeper", daemon=True)
        self._thread.start()

    def watch(self, queue: Any, position: int, returned: int, told: Callable[[], None]) -> int:
        """Call `told` once it is worth trying: the ticket of this order."""
        ticket = next(self._orders.tickets)
        self._watched[ticket] = told
        self._orders.give(True, ticket, queue, position, returned)
        return ticket

    def forget(self, ticket: int, queue: Any, position: int, returned: int) -> None:
        """Nobody waits for this any more."""
        if self._watched.pop(ticket, None) is not None:
            self._orders.give(False, ticket, queue, position, returned)

    def close(self) -> None:
        self._is_stopped = True
        self._orders.nudge()
        self._thread.join()

    def _ring(self, tickets: list[int]) -> None:
        for ticket in tickets:
            told = self._watched.pop(ticket, None)
            if told is not None:
                told()

    # --- in the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_stopped:
            try:
                rung = self._orders.sleep()
            except Error:  # all of them try, and who cannot go on finds out
                rung = self._orders.waits.tickets
                self._orders.waits.remove_all()
            if rung:
                self._call(partial(self._ring, rung))
        self._orders.waits.remove_all()
