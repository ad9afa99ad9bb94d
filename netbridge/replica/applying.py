"""The thread that applies what comes to a replica: the network thread waits for no disk.

Orders are done one after the other.  That a frame is written is told through an eventfd, before it
is synced; that an order is done, by a call in the network thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.journal.place import Place
from shmbroker.netbridge.replica.warm import Warm


class Applying:
    def __init__(
        self,
        warm: Warm,
        remake: Callable[[], Warm],
        synced: Callable[[Place, bytes], None],
        failed: Callable[[Error], None],
    ) -> None:
        """`remake`: another one, without what this one has; it is closed by then.

        `synced` (with the standing that was met last) and `failed` are called in the thread.
        """
        self.eventfd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        """Readable when `written` is further."""
        self._warm: Warm | None = warm
        self._remake, self._synced, self._failed = remake, synced, failed
        self._lock = threading.Lock()
        self._orders: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._has_failed = False
        warm.applier.tell(self.eventfd)
        self._thread = threading.Thread(target=self._run, name="shmbroker-replica", daemon=True)
        self._thread.start()

    @property
    def written(self) -> int:
        """The number of the last frame that is in a file, perhaps not synced."""
        with self._lock:
            return 0 if self._warm is None else self._warm.applier.written

    def apply(self, frames: bytes) -> None:
        self._orders.put(lambda: self._apply(frames))

    def go_on(self, place: Place) -> None:
        self._orders.put(lambda: self._go_on(place))

    def discard(self) -> None:
        self._orders.put(self._discard)

    def then(self, step: Callable[[], None]) -> None:
        """When all that was ordered before is done."""
        self._orders.put(step)

    def prepare(self) -> None:
        self._orders.put(self._prepare)

    def stop(self) -> Warm | None:
        """What was ordered is done; nothing comes any more."""
        self._orders.put(None)
        self._thread.join()
        if self.eventfd >= 0:
            if self._warm is not None:
                self._warm.applier.tell(-1)
            os.close(self.eventfd)
            self.eventfd = -1
        return self._warm

    # --- in the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        while (order := self._orders.get()) is not None:
            try:
                order()
            except (Error, OSError) as error:
                self._has_failed = True
                self._failed(error if isinstance(error, Error) else Error(str(error)))

    def _apply(self, frames: bytes) -> None:
        if self._has_failed or self._warm is None:
            return  # all comes anew
        self._warm.applier.frames(frames)
        place = self._warm.place
        if place is not None:
            self._synced(place, self._warm.applier.standing())

    def _go_on(self, place: Place) -> None:
        if not self._has_failed and self._warm is not None:
            self._warm.applier.go_on(place)

    def _discard(self) -> None:
        with self._lock:
            former, self._warm = self._warm, None
        if former is not None:
            former.close()
        made = self._remake()
        made.applier.tell(self.eventfd)
        with self._lock:
            self._warm = made
        self._has_failed = False

    def _prepare(self) -> None:
        if self._warm is not None:
            self._warm.prepare()
