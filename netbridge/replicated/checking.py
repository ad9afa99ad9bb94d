"""Whether a journal has a frame, looked up in its files while it is written."""

from __future__ import annotations

from collections.abc import Callable

from shmbroker.ipc.journal.history import History
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.member.standing import Position
from shmbroker.netbridge.member.written import place_of
from shmbroker.netbridge.replicated.store import Store


class Checking:
    """Of the network thread."""

    def __init__(self, store: Store, worker: Worker) -> None:
        self._store, self._worker = store, worker
        self._known: tuple[Position, bool] = Position(), False

    def look_for(
        self, last: Position, cut: bool, then: Callable[[], None], go_on: Callable[[], None]
    ) -> None:
        """What was looked for last is known when `then` is called.

        `cut`: it counts as not there, since what comes behind it is in no file.
        """

        def found(told: bool | Exception) -> None:
            self._known = last, told is True
            then()
            go_on()

        if cut:
            found(False)
        else:
            self._worker.do(lambda: self._has(last), found, of="history")

    def _has(self, last: Position) -> bool:
        """By its number, epoch and chain, or one that repeats it."""
        with History(self._store.journal) as history:
            return history.seek(place_of(last))

    def has(self, position: Position) -> bool:
        return not position.number or self._known == (position, True)
