"""The sleeper: one thread that sleeps in the kernel until a ring has news for the network thread.

It is a thread of the library (ipc/paging/sleeper.c), which writes the eventfd of the network
thread.  A ticket is one order to watch a bell; it is told of once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from typing import Any

from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc._quick import lib as quick
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import error_for

ROOM: int = lib.SB_ROOM
ANY: int = lib.SB_ANY_NUMBER
CONFIRMED: int = lib.SB_CONFIRMED
RUNG_MAX = 64
"""Tickets that are asked for at once."""


class Sleeper:
    """All of it is of the network thread."""

    def __init__(self, event: int) -> None:
        """`event`: the eventfd that says that there are tickets to be told of."""
        self._event = event
        self._watched: dict[int, tuple[Callable[[], None], Any]] = {}
        self._forgotten: dict[int, Any] = {}
        """Queues, which stay open until the thread has let go of them."""
        self._tickets = count(1)
        self._rung = ffi.new("int64_t[]", RUNG_MAX)
        made = ffi.new("sb_sleeper **")
        _check(lib.sb_sleeper_open(event, made))
        self._sleeper: Any = made[0]

    def watch(self, queue: Any, position: int, returned: int, told: Callable[[], None]) -> int:
        """Call `told` once it is worth trying: the ticket of this order."""
        ticket = next(self._tickets)
        self._watched[ticket] = told, queue
        _check(quick.sb_sleeper_watch(self._sleeper, ticket, queue, position, returned))
        return ticket

    def forget(self, ticket: int, queue: Any, position: int, returned: int) -> None:
        """Nobody waits for this any more."""
        if self._watched.pop(ticket, None) is not None and self._sleeper is not None:
            self._forgotten[ticket] = queue
            _check(lib.sb_sleeper_forget(self._sleeper, ticket, queue, position, returned))

    def ring(self) -> None:
        """Tell of all that are worth trying."""
        rung = self._rung
        found = quick.sb_sleeper_rung(self._sleeper, rung, RUNG_MAX) if self._sleeper else 0
        for ticket in rung[0:found]:
            if ticket < 0:
                del self._forgotten[-ticket]
            elif ticket in self._watched:
                told, _ = self._watched.pop(ticket)
                told()
        if found == RUNG_MAX:
            os.eventfd_write(self._event, 1)  # there may be more: others have their turn first

    def close(self) -> None:
        """Nothing is told of any more."""
        if self._sleeper is not None:
            lib.sb_sleeper_close(self._sleeper)
            self._sleeper = None
            self._watched.clear()
            self._forgotten.clear()


def _check(code: int) -> None:
    if code < 0:
        raise error_for(code, "waiting for queues", ffi.errno, detail_of(code))
