"""The sleeper: one thread that sleeps in the kernel on behalf of all coroutines of a connection.

It takes and publishes nothing.  Orders reach it through a deque, and a word that ends its sleep;
its answers reach the loop through call_soon_threadsafe.  A ticket is one order to watch a bell: an
answer to an order that was taken back meanwhile finds no bell, and is forgotten.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.queue.orders import Orders

if TYPE_CHECKING:
    from shmbroker.ipc.aio.bell import Bell


class Sleeper:
    """All of it but _run is of the loop's thread.  The thread starts when first needed."""

    def __init__(self, owner: Any, tell_log: Callable[[], None]) -> None:
        self._owner = owner  # of the connection: the queues' memory stays where it is
        self._tell_log = tell_log
        self.bells: WeakValueDictionary[tuple[int, int], Bell] = WeakValueDictionary()
        self._watched: dict[int, Bell] = {}
        self._orders = Orders()
        self._thread: threading.Thread | None = None
        self._ended: asyncio.Future[None] | None = None
        self._is_stopped = False
        self._failure: Error | None = None

    def watch(self, bell: Bell) -> int:
        """Call bell.ring() once it is worth trying: the ticket of this order."""
        if self._failure is not None:
            raise self._failure
        if self._thread is None:
            self._start()
        ticket = next(self._orders.tickets)
        self._watched[ticket] = bell
        self._tell(True, ticket, bell)
        return ticket

    def forget(self, ticket: int) -> None:
        """Nobody waits for this any more."""
        bell = self._watched.pop(ticket)
        self._tell(False, ticket, bell)

    def _tell(self, is_wanted: bool, ticket: int, bell: Bell) -> None:
        self._orders.give(is_wanted, ticket, bell.queue, bell.position, bell.returned)

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        # a daemon: who forgets to close must not hang at the end
        self._thread = threading.Thread(
            target=self._run, args=(loop,), name="shmbroker-sleeper", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread; from any thread."""
        self._is_stopped = True
        self._orders.nudge()

    async def close(self) -> None:
        """Let everybody who waits find out that the connection is closed, and end the thread."""
        self.stop()
        self._ring(list(self._watched))
        if self._thread is not None and self._ended is not None:
            if self._thread.is_alive():  # in a child that was forked it never was
                await asyncio.shield(self._ended)
            self._thread.join()

    def _ring(self, tickets: list[int]) -> None:
        for ticket in tickets:
            bell = self._watched.pop(ticket, None)
            if bell is not None:
                bell.ring()

    def _fail(self, error: Error) -> None:
        self._failure = error
        self._ring(list(self._watched))

    def _end(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    # --- in the thread ------------------------------------------------------------------------

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            try:
                while not self._is_stopped:
                    rung = self._orders.sleep()
                    if rung:
                        loop.call_soon_threadsafe(self._ring, rung)
                    else:
                        self._tell_log()
            except Error as error:
                loop.call_soon_threadsafe(self._fail, error)
        self._orders.waits.remove_all()
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._end)
