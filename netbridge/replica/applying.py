"""What comes to a replica, applied: little at once, in the network thread; more in a thread of its
own, for the network thread waits for no disk.

Orders are done one after the other.  What is little is applied at once only if no order is left, so
it is in its turn.  That a frame is written is told through an eventfd, unless it is applied at
once.  Another thread syncs what is written, while more is: now and then, or, if confirms wait for
that, whenever there is something.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.journal.place import Place
from shmbroker.netbridge.replica.warm import Warm
from shmbroker.netbridge.wire.words import ReplicaAck

AT_ONCE_BYTES = 64 << 10
SYNC_SECONDS = 0.02
"""How long what is written may wait for a sync for which nobody waits."""


class Applying:
    def __init__(
        self,
        warm: Warm,
        remake: Callable[[], Warm],
        ack: ReplicaAck,
        news: Callable[[], None],
        failed: Callable[[Error], None],
    ) -> None:
        """`remake`: another one, without what this one has; it is closed by then.

        `news` is called when it has synced more, and as soon as it has another standing; it and
        `failed` in whatever thread.
        """
        self.eventfd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        """Readable when `has` is further."""
        self._warm: Warm | None = warm
        self._remake, self._ack, self._news, self._failed = remake, ack, news, failed
        self._standing = warm.standing
        self._there, self._syncing = threading.Lock(), threading.Lock()
        """Held to replace what is there: the first also to look at it, the other to sync it."""
        self._tells = self.eventfd if ack is ReplicaAck.RECEIVED else -1
        self._left = 0
        self._counting = threading.Lock()
        self._orders: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._has_failed = self._has_applied = False
        self._unsynced, self._ends = threading.Event(), threading.Event()
        self._threads = [
            threading.Thread(target=run, name=f"shmbroker-{name}", daemon=True)
            for name, run in (("replica", self._run), ("sync", self._sync))
        ]
        for each in self._threads:
            each.start()

    @property
    def has(self) -> int:
        """The number of the last frame that it may answer for."""
        with self._there:
            if self._warm is None:
                return 0
            applier = self._warm.applier
            return applier.written if self._ack is ReplicaAck.RECEIVED else applier.synced

    @property
    def is_done(self) -> bool:
        """No order is left, and nothing has failed."""
        with self._counting:
            return not self._left and not self._has_failed

    @property
    def standing(self) -> bytes:
        """The newest that was applied."""
        return self._standing

    def apply(self, frames: bytes | bytearray) -> bool:
        """True: it is done."""
        if self._left or len(frames) > AT_ONCE_BYTES:
            self._order(lambda: self._apply(frames, self._tells))
            return False
        try:
            self._apply(frames, -1)
        except (Error, OSError) as error:
            self._fails(error)
        return True

    def go_on(self, place: Place) -> None:
        self._order(lambda: self._go_on(place))

    def discard(self) -> None:
        self._order(self._discard)

    def then(self, step: Callable[[], None]) -> None:
        """When all that was ordered before is done."""
        self._order(step)

    def stop(self) -> Warm | None:
        """What was ordered is done, and on disk; nothing comes any more.  None: it is of no use.

        Who joins again says what it has, and its live takes that for confirmed.
        """
        self._orders.put(None)
        self._ends.set()
        self._unsynced.set()
        for each in self._threads:
            each.join()
        if self.eventfd >= 0:
            os.close(self.eventfd)
            self.eventfd = -1
        with self._there:  # what was ordered before is still told of, and nothing is left to ask
            warm, self._warm = self._warm, None
        if warm is not None and (self._has_failed or not _is_synced(warm)):
            warm.close()
            return None
        return warm

    def _order(self, order: Callable[[], None]) -> None:
        """Of the network thread: so nothing is applied at once while an order is left."""
        with self._counting:
            self._left += 1
        self._orders.put(order)

    # --- in the thread that applies -----------------------------------------------------------

    def at(self) -> tuple[Place, bytes] | None:
        """The last frame that was applied, and the newest standing; it is synced up to there.

        For a step of `then`.  None: nothing was applied, or what is there is not to be used.
        """
        warm = self._warm
        if warm is None or self._has_failed or not self._has_applied:
            return None
        with self._syncing:
            warm.applier.sync()
        place = warm.place
        return None if place is None else (place, warm.standing)

    def _run(self) -> None:
        while (order := self._orders.get()) is not None:
            try:
                order()
            except (Error, OSError) as error:
                self._fails(error)
            with self._counting:
                self._left -= 1

    def _fails(self, error: Error | OSError) -> None:
        self._has_failed = True
        self._failed(error if isinstance(error, Error) else Error(str(error)))

    def _apply(self, frames: bytes | bytearray, eventfd: int) -> None:
        if self._has_failed or self._warm is None:
            return  # all comes anew
        is_noted = self._warm.applier.frames(frames, eventfd)
        self._has_applied = True
        if is_noted and (standing := self._warm.standing) != self._standing:
            self._standing = standing
            self._news()
        if not self._unsynced.is_set():
            self._unsynced.set()

    def _go_on(self, place: Place) -> None:
        if not self._has_failed and self._warm is not None:
            with self._syncing, self._there:
                self._warm.applier.go_on(place)

    def _discard(self) -> None:
        with self._syncing:
            with self._there:
                former, self._warm = self._warm, None
            if former is not None:
                former.close()
        made = self._remake()
        self._standing = made.standing
        with self._there:
            self._warm = made
        self._has_failed = self._has_applied = False

    # --- in the thread that syncs -------------------------------------------------------------

    def _sync(self) -> None:
        while not self._ends.is_set():
            self._unsynced.wait()
            if self._ack is ReplicaAck.RECEIVED:
                self._ends.wait(SYNC_SECONDS)
            self._unsynced.clear()
            try:
                self._sync_now()
            except (Error, OSError) as error:
                self._fails(error)

    def _sync_now(self) -> None:
        with self._syncing:
            if self._warm is None:
                return
            self._warm.applier.sync()
        if self._ack is ReplicaAck.DISK:
            os.eventfd_write(self.eventfd, 1)
        self._news()


def _is_synced(warm: Warm) -> bool:
    try:
        warm.applier.sync()
    except (Error, OSError):
        return False
    return True
