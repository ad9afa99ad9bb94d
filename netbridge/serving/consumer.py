"""What takes messages for a session: a consumer as its credit allows, a get once."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from shmbroker.core.codes import EMPTY
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import Error, error_for
from shmbroker.ipc.queue.consuming import Consuming
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.selector.selection import Selection
from shmbroker.netbridge.carrier.sleeper import ANY
from shmbroker.netbridge.serving.alarms import Alarm
from shmbroker.netbridge.serving.producer import until
from shmbroker.netbridge.serving.taking import take
from shmbroker.netbridge.wire.frame import Command

if TYPE_CHECKING:
    from collections.abc import Callable

    from shmbroker.netbridge.serving.served import Served

A_MESSAGE: int = lib.SB_A_MESSAGE
BATCHES_MAX = 4
"""Of a consumer in a turn; then others have theirs."""
BATCH_BYTES = 256 << 10


class News:
    """Waits for a message that may be taken."""

    def __init__(self, served: Served, queue: Queue, selection: Selection | None) -> None:
        self._sleeper = served.service.sleeper
        self._queue, self._selection = queue, selection
        self._ticket: tuple[int, int, int] | None = None

    def watch(self, told: Callable[[], None]) -> None:
        if self._ticket is not None:
            return
        position, returned = A_MESSAGE, ANY
        if self._selection is not None:
            position, returned = self._selection.position, self._selection.returned

        def rung() -> None:
            self._ticket = None
            told()

        ticket = self._sleeper.watch(self._queue._queue, position, returned, rung)
        self._ticket = ticket, position, returned

    def forget(self) -> None:
        if self._ticket is not None:
            ticket, position, returned = self._ticket
            self._sleeper.forget(ticket, self._queue._queue, position, returned)
            self._ticket = None

    def pass_on(self) -> None:
        """A bell rings for one: what we leave is for others."""
        lib.sb_pass_on(self._queue._queue, A_MESSAGE)


class Consumer:
    def __init__(
        self, served: Served, target: int, queue: Queue, selection: Selection | None,
        consuming: Consuming,
    ) -> None:  # fmt: skip
        self.queue = queue
        self._served, self._target = served, target
        self._selection, self._consuming = selection, consuming
        self._news = News(served, queue, selection)
        self._comes_again = False

    def offer(self) -> None:
        """Deliver what there is, as far as the session has room."""
        self._comes_again = False
        session = self._served.session
        for _ in range(BATCHES_MAX):
            messages, size = session.room(self._target)
            if not messages:
                self._news.forget()
                return
            size, limit = min(size, BATCH_BYTES), session.limits.message_bytes
            is_empty = True
            for taken in take(self.queue, self._selection, messages, size, limit):
                is_empty = False
                self._served.delivers(self._target, taken.count, taken.body, taken.batch)
            if is_empty:
                self._news.watch(self._rung)
                return
        if not self._comes_again:
            self._comes_again = True
            self._served.service.soon(self.rung)

    def _rung(self) -> None:
        self.rung()
        if not self._served.session.room(self._target)[0]:
            self._news.pass_on()

    def rung(self) -> None:
        """From outside of a command: nobody else deals with its errors."""
        if self._target not in self._served.consumers:
            return
        try:
            self.offer()
        except Error as error:
            self._served.lost_consumer(self._target, error)

    def close(self) -> None:
        self._news.forget()
        with suppress(Error):  # the queue was deleted
            self._consuming.end()


class Get:
    """One call: what there is at once, or the first that comes in time."""

    def __init__(
        self, served: Served, command: Command, queue: Queue, selection: Selection | None
    ) -> None:
        self._served, self._command = served, command
        self._queue, self._selection = queue, selection
        self._until = until(command)
        self._news = News(served, queue, selection)
        self._alarm: Alarm | None = None

    def go_on(self) -> None:
        """While its program is away it takes nothing: others have it."""
        is_here = self._served.session.is_attached
        most, limit = max(1, self._command.count), self._served.session.limits.message_bytes
        try:
            portions = take(self._queue, self._selection, most, BATCH_BYTES, limit)
            with closing(portions):
                taken = next(portions, None) if is_here else None
            if taken is None and self._until <= time.monotonic():
                raise error_for(EMPTY, f"taking from queue {self._queue.name!r}")
        except Error as error:
            self.close()
            self._served.refuse(self._command, error)
            return
        if taken is not None:
            self.close()
            self._served.took(self._command, taken)
            return
        if is_here:
            self._news.watch(self.go_on)
        else:
            self._news.pass_on()
        if self._alarm is None:
            self._alarm = self._served.service.alarms.at(self._until, self.go_on)

    def leave(self, target: int) -> None:
        """Its program waits no longer, if it is this one."""
        if target == self._command.target:
            self.close()
            self._served.refuse(
                self._command, error_for(EMPTY, f"taking from queue {self._queue.name!r}")
            )

    def close(self) -> None:
        self._news.forget()
        if self._alarm is not None:
            self._alarm.cancel()
        self._served.gets.discard(self)
