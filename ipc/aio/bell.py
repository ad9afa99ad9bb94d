"""A bell of a queue, and the coroutines that wait for it.

The sleeper rings once: one waiter wakes and tries.  It re-parks in front if there was nothing, and
passes the ring on otherwise, cancelled or not: to the next waiter, and after the last one to those
who sleep in other processes.  So as long as anybody waits here, the bell is watched by the sleeper,
or somebody is about to try.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any

from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.aio.sleeper import Sleeper

A_MESSAGE: int = lib.SB_A_MESSAGE
ROOM: int = lib.SB_ROOM
CONFIRMED: int = lib.SB_CONFIRMED


class Bell:
    """Belongs to the loop's thread."""

    __slots__ = ("__weakref__", "_sleeper", "_ticket", "_waiters", "position", "queue", "returned")

    def __init__(self, sleeper: Sleeper, queue: Any, position: int) -> None:
        self.queue = queue
        self.position = position
        """A_MESSAGE, ROOM, or that of the message that a subscriber wants."""
        self.returned = -1
        """For who selects: or that other than so many messages have come back.  CONFIRMED: that
        the message at this position is on disk."""
        self._sleeper = sleeper
        self._ticket: int | None = None
        self._waiters: deque[asyncio.Future[None]] = deque()

    @classmethod
    def of(cls, sleeper: Sleeper, queue: Any, position: int) -> Bell:
        """The one bell of a queue that all who wait for a message, or for room, share."""
        key = (int(ffi.cast("intptr_t", queue)), position)
        bell = sleeper.bells.get(key)
        if bell is None:
            bell = sleeper.bells[key] = cls(sleeper, queue, position)
        return bell

    async def wait(self, *, again: bool = False) -> None:
        """Until it rings for us; try, and then wait again, or pass it on."""
        waiter = asyncio.get_running_loop().create_future()
        if again:
            self._waiters.appendleft(waiter)
        else:
            self._waiters.append(waiter)
        try:
            if self._ticket is None:
                self._ticket = self._sleeper.watch(self)
            await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled():  # woken and cancelled at once
                self.pass_on()
            else:
                self._leave(waiter)
            raise

    def _leave(self, waiter: asyncio.Future[None]) -> None:
        with suppress(ValueError):  # cancelled, and then all were woken
            self._waiters.remove(waiter)
        if not self._waiters and self._ticket is not None:
            self._sleeper.forget(self._ticket)
            self._ticket = None

    def ring(self) -> None:
        """It is worth trying; the sleeper no longer watches."""
        self._ticket = None
        self.pass_on()

    def pass_on(self) -> None:
        """There may be more than we wanted."""
        for waiter in self._waiters:
            if not waiter.done():
                self._waiters.remove(waiter)
                waiter.set_result(None)
                return
        lib.sb_pass_on(self.queue, self.position)

    def ring_all(self) -> None:
        """What is waited for is gone: everybody finds out."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
        if self._ticket is not None:
            self._sleeper.forget(self._ticket)
            self._ticket = None
