"""A replica's own side, whatever carries its frames: it asks, applies what comes, and answers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error, JournalDamaged, JournalFailed, MessageGone
from shmbroker.ipc.journal.place import Place
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.replica.action import Action, Apply, Became, Discard, GoOn, Say
from shmbroker.netbridge.replica.applying import Applying
from shmbroker.netbridge.replica.aside import set_aside
from shmbroker.netbridge.replica.copying import Copying, State, Unexpected
from shmbroker.netbridge.replica.terms import ReplicationTerms
from shmbroker.netbridge.replica.warm import Warm
from shmbroker.netbridge.wire.frame import Frame

Tell = Callable[[Mapping[str, Any]], None]
MIB: Final = 1 << 20
CURABLE: Final = (JournalDamaged, MessageGone)
"""All that comes anew may help."""


class Carrier:
    """Of its frames to the live; all of it is called in the network thread."""

    def say(self, frame: Frame) -> None:
        raise NotImplementedError

    def break_off(self, why: str) -> None:
        """What has come cannot be: the link is made anew."""
        raise NotImplementedError

    def failed(self, why: str) -> None:
        """It cannot go on."""
        raise NotImplementedError

    def discards(self) -> bool:
        """All comes anew, and what it has is set aside; False: it is not to be."""
        return True

    def applied(self, place: Place, standing: bytes) -> None:
        """What comes up to there is in its rings, and synced."""


class Following(Closable):
    def __init__(
        self,
        thread: NetworkThread,
        store: Path,
        name: str,
        boot: bytes,
        terms: ReplicationTerms,
        warm: Warm,
        make: Callable[[], Warm],
        carrier: Carrier,
        tell: Tell,
    ) -> None:
        """`warm`: what its store has.  `make`: another one, of what the store has then."""
        self.terms = terms
        self._thread, self._store, self._tell = thread, store, tell
        self._make, self._carrier = make, carrier
        self.failure = ""
        self._first, self._began_at = warm, warm.place
        self.places: tuple[Place | None, Place | None] = (warm.repeats, warm.own)
        """The last frame that it follows, and the same in its own journal; as it was told last."""
        self.copying = Copying(name, boot, terms.replica_ack)
        self._applying = Applying(warm, self._remake, terms.replica_ack, self._news, self._failed)
        thread.ask(lambda: thread.watch(self._applying.eventfd, self._wrote))
        self._told = warm.standing
        self._session = self._settled = 0
        self._synced_from = 0.0
        self._copy = 0
        """Counts those that were set aside."""
        self._is_up = False

    # --- from any thread but that of the network ----------------------------------------------

    def stop(self) -> Warm | None:
        """What has come is applied, and nothing comes any more; None: it was about to be remade."""
        descriptor = self._applying.eventfd
        if descriptor < 0:
            return None
        self._thread.ask(lambda: self._thread.unwatch(descriptor))
        warm = self._applying.stop()
        if warm is not None and (warm is not self._first or warm.place != self._began_at):
            warm.repeats, warm.own = warm.place, None
        return warm

    def close(self) -> None:
        """Its rings go; its journal stays."""
        warm = self.stop()
        if warm is not None:
            warm.close()

    # --- of the network thread ----------------------------------------------------------------

    def up(self, *, anew: bool = False) -> None:
        """The live hears it.  `anew`: all is to come.

        It joins when what came before is applied: that is part of what it has.
        """
        self._session += 1
        self._is_up = True
        session = self._session
        self.then(lambda: self._join(session, anew))

    def _join(self, session: int, anew: bool) -> None:
        if session != self._session or not self._is_up:
            return
        if anew:
            self.places = (None, None)
        self._does(self.copying.up(*self.places))

    def lost(self) -> None:
        self._is_up = False
        self._does(self.copying.lost())

    def heard(self, frame: Frame) -> None:
        try:
            self._does(self.copying.heard(frame))
        except Unexpected as error:
            self._carrier.break_off(str(error))

    @property
    def progress(self) -> str:
        """Of a sync, in the words of `status`; empty: it is short, or there is none."""
        percent = self.copying.percent
        if percent is None:
            return ""
        rate = self.copying.came / max(time.monotonic() - self._synced_from, 1e-3)
        return f"{percent} %, {rate / MIB:.0f} MiB/s"

    @property
    def has_told_all(self) -> bool:
        """That its live has said in records: nothing that has come waits to be applied."""
        return self._applying.is_done and self._applying.standing == self._told

    def then(self, step: Callable[[], None]) -> None:
        """In the thread, when all that has come by now is applied, and told."""
        copy = self._copy

        def applied() -> None:
            at = None
            try:
                at = self._applying.at()
            finally:
                self._thread.call(lambda: self._has_applied(at, copy, step))

        self._applying.then(applied)

    def _has_applied(
        self, at: tuple[Place, bytes] | None, copy: int, step: Callable[[], None]
    ) -> None:
        if at is not None and copy == self._copy:
            self.places, self._told = (at[0], None), at[1]
            self._carrier.applied(*at)
        step()

    def _wrote(self) -> None:
        os.eventfd_read(self._applying.eventfd)
        self._look()

    def _look(self) -> None:
        """Numbers are of the live that is followed, once what came before it is applied."""
        if self._settled == self._session:
            self._does(self.copying.reached(self._applying.has))

    def _has_settled(self, session: int) -> None:
        self._settled = session
        self._look()

    def _has_failed(self, error: Error) -> None:
        """What it has cannot be gone on with: it asks for all, if that may help.

        What could not be synced may be lost; on a disk that is full all is there that it has
        answered for, and it goes on with that when it is started again.
        """
        self._tell({"event": "replica", "level": "error", "state": "failed", "reason": str(error)})
        if isinstance(error, (*CURABLE, JournalFailed)):
            self.places = (None, None)
            self._carrier.break_off(str(error))
        if not isinstance(error, CURABLE):
            self.failure = str(error)
            self._carrier.failed(self.failure)

    def _does(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Apply):
                if self._applying.apply(action.frames):
                    self._look()
            elif isinstance(action, Say):
                self._carrier.say(action.frame)
            elif isinstance(action, GoOn):
                if action.place != self.places[0]:
                    self._applying.go_on(action.place)
                self._settle()
            elif isinstance(action, Discard):
                if not self._carrier.discards():
                    return
                self.places = (None, None)
                self._applying.discard()
                self._copy += 1  # by now: what is ordered from now on is of the new one
                self._settle()
            elif isinstance(action, Became):
                self._became(action.state)

    def _settle(self) -> None:
        session = self._session
        self._applying.then(lambda: self._thread.call(lambda: self._has_settled(session)))

    def _became(self, state: str) -> None:
        if state == State.SYNCING.value:
            self._synced_from = time.monotonic()
        if state == State.IN_SYNC.value:
            self.then(lambda: None)  # what it has is whole by this, also if nothing more comes
        self._tell({"event": "replica", "level": "info", "state": state,
                    "reason": self.copying.why if state == "waiting" else ""})  # fmt: skip

    # --- of the thread that applies -----------------------------------------------------------

    def _remake(self) -> Warm:
        return remade(self._store, self._make, self._tell)

    def _news(self) -> None:
        self._thread.call(lambda: self.then(lambda: None))

    def _failed(self, error: Error) -> None:
        self._thread.call(lambda: self._has_failed(error))


def remade(store: Path, make: Callable[[], Warm], tell: Tell) -> Warm:
    """Another one, without what its store has: that is set aside."""
    kept = set_aside(store)
    if kept is not None:
        tell({"event": "replica", "level": "warning", "state": "set aside",
              "reason": f"what it had is in {kept}"})  # fmt: skip
    return make()
