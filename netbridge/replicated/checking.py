"""Whether a journal has a frame, looked up in its files while it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from shmbroker.ipc.journal.history import History
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.member.said import Join, NotJoined
from shmbroker.netbridge.member.standing import Position
from shmbroker.netbridge.member.written import place_of
from shmbroker.netbridge.replicated.store import Store
from shmbroker.netbridge.replicated.talks import Talks

TRIES: Final = 3


class Links(Protocol):
    """`acting.Acting`."""

    talks: Talks


class Checking:
    """Of the network thread."""

    def __init__(
        self, links: Links, store: Store, worker: Worker, line: Callable[..., None]
    ) -> None:
        self._links, self._store, self._worker, self._line = links, store, worker, line
        self._known: tuple[Position, bool] = Position(), False
        self._failed: dict[str, int] = {}
        """How often in a row, by member."""

    def look_for(
        self,
        member: str,
        join: Join,
        cut: bool,
        then: Callable[[], None],
        go_on: Callable[[], None],
    ) -> None:
        """What was looked for last is known when `then` is called.  If it cannot be known this
        time, the member is to come again: it would copy all for nothing.  It does that if it can
        never be known.

        `cut`: it counts as not there, since what comes behind it is in no file.
        """

        def found(told: bool | Exception) -> None:
            failed = self._failed.pop(member, 0) + isinstance(told, Exception)
            if isinstance(told, Exception) and failed < TRIES:
                self._failed[member] = failed
                self._line("warning", why=f"where the journal of {member} ends: {told}")
                self._links.talks.say(member, NotJoined("later", join.stream))
            else:
                self._known = join.last, told is True
                then()
            go_on()

        if cut:
            found(False)
        else:
            self._worker.do(lambda: self._has(join.last), found, of="history")

    def _has(self, last: Position) -> bool:
        """By its number, epoch and chain, or one that repeats it."""
        with History(self._store.journal) as history:
            return history.seek(place_of(last))

    def has(self, position: Position) -> bool:
        return not position.number or self._known == (position, True)
