"""When all that stands here now is synced, and with the replicas that count: marks of streams, too.

A mark that moves without a message is in the journal some time later, and nothing tells when.  But
a transaction is in it as of a moment at which all marks were read that had moved before
(ipc/broker/moment.c).  So an empty message is published in one, and is taken when it is confirmed.
One is on its way at a time; whoever asks meanwhile waits for the next.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from shmbroker.core.codes import OK, UNCONFIRMED
from shmbroker.core.layout import CONFIRM_EFFECTIVE
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import Empty, Error
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.sink.sink import marks
from shmbroker.ipc.transaction.transaction import Transaction
from shmbroker.netbridge.carrier.reached import Place
from shmbroker.netbridge.carrier.sleeper import CONFIRMED, Sleeper
from shmbroker.netbridge.carrier.worker import Worker

AGAIN_SECONDS: Final = 0.1
"""After a failure: there is no memory, or the vhost ends."""
Told = Callable[[], None]


class Synced:
    """Of a broker; a member of its network thread."""

    def __init__(self, broker: Broker, sleeper: Sleeper, worker: Worker) -> None:
        self._broker, self._sleeper, self._worker = broker, sleeper, worker
        self._queue: Queue | None = None
        self._transaction: Transaction | None = None
        """Until it is committed."""
        self._waiting: list[Told] = []
        self._asked: list[Told] = []
        """They wait for the one that is on its way."""
        self._place: Place | None = None
        self._ticket = 0
        self._is_busy = self._has_ended = False
        self.due = math.inf

    def after(self, told: Told) -> None:
        """Never at once."""
        self._waiting.append(told)
        if not self._is_busy and not self._has_ended:
            self._is_busy = True
            self._begin()

    def woken(self, now: float) -> None:
        self.due = math.inf
        self._begin()

    def end(self) -> None:
        """Nobody is told any more."""
        self._has_ended, self.due = True, math.inf
        self._waiting.clear()
        self._asked.clear()
        if self._place is not None:
            self._sleeper.forget(self._ticket, *self._place, CONFIRMED)
            self._place = None

    def _begin(self) -> None:
        if self._queue is None:
            self._worker.do(partial(marks, self._broker), self._opened)
        elif self._place is None:
            self._publish(self._queue)

    def _opened(self, found: Queue | Exception) -> None:
        if self._has_ended:
            return
        if isinstance(found, Queue):
            self._queue = found
            lib.sb_queue_serve(found._queue)
            self._take(found)  # of a broker that was killed
            self._publish(found)
        elif isinstance(found, Error):
            self._again()
        else:
            raise found

    def _again(self) -> None:
        self.due = time.monotonic() + AGAIN_SECONDS

    def _publish(self, queue: Queue) -> None:
        self._asked += self._waiting
        self._waiting.clear()
        try:
            if self._transaction is None:
                made = self._broker.transaction(warn=False)
                made.publish(queue, b"")
                self._transaction = made
            code = lib.sb_transaction_commit(self._transaction._transaction, 0)
        except Error:
            code = not OK
        if code != OK:
            self._again()
            return
        self._transaction = None
        self._place = queue._queue, queue.published - 1
        self._watch()

    def _watch(self) -> None:
        assert self._place is not None
        self._ticket = self._sleeper.watch(*self._place, CONFIRMED, self._rung)

    def _rung(self) -> None:
        assert self._place is not None
        assert self._queue is not None
        code: int = lib.sb_confirm(*self._place, CONFIRM_EFFECTIVE, 0)
        if code == UNCONFIRMED:
            self._watch()
            return
        self._place = None
        if code < OK:  # the vhost ends, and nobody will know
            self.end()
            return
        self._take(self._queue)
        told, self._asked = self._asked, []
        for each in told:
            each()
        if self._has_ended:
            return
        self._is_busy = bool(self._waiting)
        if self._is_busy:
            self._publish(self._queue)

    def _take(self, queue: Queue) -> None:
        try:
            while True:
                queue.receive(timeout=0)
        except Empty:
            pass
        except Error:  # the vhost ends
            self._has_ended = self._broker.is_closed


class Moment:
    """What stood when it was made is synced once it is over."""

    def __init__(self, after: Callable[[Told], None]) -> None:
        self.is_over = False
        self.tell: Told | None = None
        after(self._is_synced)

    def _is_synced(self) -> None:
        self.is_over = True
        if self.tell is not None:
            self.tell()
