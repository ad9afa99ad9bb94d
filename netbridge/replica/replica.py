"""A replica: follows the live over a link, and takes over when it is told to."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error, InvalidArgument, JournalDamaged, MessageGone
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.journal.place import Place
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.ending import Ending, Reason, State
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.replica.action import Action, Apply, Became, Discard, GoOn, Say
from shmbroker.netbridge.replica.applying import Applying
from shmbroker.netbridge.replica.copying import Copying, Unexpected
from shmbroker.netbridge.replica.terms import ReplicationTerms
from shmbroker.netbridge.replica.warm import Warm, set_aside
from shmbroker.netbridge.security.credential import Credential
from shmbroker.netbridge.wire.frame import Frame
from shmbroker.netbridge.wire.words import ReplicaAck, Role

Tell = Callable[[Mapping[str, Any]], None]


class ReplicaLink(Link):
    def __init__(self, replica: Replica, *given: Any, **named: Any) -> None:
        self._replica = replica
        replica.link = self
        self.attached: End | None = None
        super().__init__(*given, role=Role.REPLICA, **named)

    def became(self, end: End, state: State) -> None:
        super().became(end, state)
        if state is State.UP:
            self.attached = end
            self._replica.link_is_up()

    def heard(self, end: End, frame: Frame) -> None:
        if end is self.attached:
            self._replica.heard(frame)

    def ended(self, end: End, how: Ending) -> None:
        was_attached = end is self.attached
        if was_attached:
            self.attached = None
        super().ended(end, how)
        if was_attached:
            self._replica.link_is_lost()

    def break_off(self, why: str) -> None:
        if self.attached is not None:
            now = time.monotonic()
            self.attached.does(self.attached.machine.refuse(Reason.DROPPED, why, now))


class Replica(Closable):
    def __init__(
        self,
        thread: NetworkThread,
        store: Path,
        vhost: str,
        uri: str,
        credential: Credential,
        ours: Identity,
        *,
        arena_bytes: int,
        segment_bytes: int = 0,
        group: str = "",
        boot: bytes = bytes(16),
        terms: ReplicationTerms | None = None,
        times: LinkTimes | None = None,
        tell: Tell = lambda _: None,
    ) -> None:
        """What its store has is read first.  `ours`: with the node id of the live.

        `vhost` must not be there for others: what has its name is removed.
        """
        self.terms = terms or ReplicationTerms()
        self._thread, self._store, self._tell = thread, store, tell

        def make() -> Warm:
            return Warm(
                store, vhost, node=ours.node, arena_bytes=arena_bytes, group=group,
                segment_bytes=segment_bytes, resync_bytes=self.terms.resync_bytes,
            )  # fmt: skip

        self._make = make
        self._failure = ""
        warm = self._opened()
        self._places: tuple[Place | None, Place | None] = (warm.repeats, warm.own)
        self._copying = Copying(ours.name, boot, self.terms.replica_ack)
        self._applying = Applying(warm, self._remake, self._synced, self._failed)
        thread.ask(lambda: thread.watch(self._applying.eventfd, self._wrote))
        self._session = self._settled = 0
        self.link: ReplicaLink
        ReplicaLink(
            self, thread, f"replica {ours.name}"[:255], uri, credential, ours, (),
            times=times, tell=tell,
        )  # fmt: skip

    def _opened(self) -> Warm:
        """What its store has; if that cannot be read, nothing."""
        try:
            return self._make()
        except (JournalDamaged, InvalidArgument) as error:
            self._tell({"event": "replica", "level": "warning", "state": "unreadable",
                        "reason": str(error)})  # fmt: skip
            return self._remake()

    # --- from any thread ----------------------------------------------------------------------

    @property
    def state(self) -> str:
        return "failed" if self._failure else self._copying.state.value

    @property
    def may_take_over(self) -> bool:
        """It has all that was confirmed with it; whether it may is not decided here."""
        return not self._failure and self._copying.may_take_over

    @property
    def has(self) -> int:
        """The last frame of the live that it has said to have."""
        return self._copying.has

    def take_over(self, epoch: int, *, force: bool = False) -> tuple[Broker, Journaler]:
        """Everybody sees its rings, and it writes its journal: broker and journaler are the
        caller's to close, journaler first.  `epoch`: granted, and above that of the live."""
        if not (self.may_take_over or force):
            raise InvalidArgument(f"the replica is {self.state}, and not in sync")
        warm = self._ended()
        if warm is None:
            raise InvalidArgument("the replica has nothing: it was about to begin anew")
        return warm.take_over(epoch)

    def close(self) -> None:
        """Its rings go; its journal stays, and it can go on with that."""
        warm = self._ended()
        if warm is not None:
            warm.close()

    def _ended(self) -> Warm | None:
        self._thread.ask(self.link.end)
        descriptor = self._applying.eventfd
        if descriptor < 0:
            return None
        self._thread.ask(lambda: self._thread.unwatch(descriptor))
        return self._applying.stop()

    # --- of the network thread ----------------------------------------------------------------

    def link_is_up(self) -> None:
        self._session += 1
        self._does(self._copying.up(*self._places))

    def link_is_lost(self) -> None:
        self._does(self._copying.lost())

    def heard(self, frame: Frame) -> None:
        try:
            self._does(self._copying.heard(frame))
        except Unexpected as error:
            self.link.break_off(str(error))

    def _wrote(self) -> None:
        os.eventfd_read(self._applying.eventfd)
        if self.terms.replica_ack is ReplicaAck.RECEIVED:
            self._reached(self._applying.written)

    def _has_synced(self, place: Place) -> None:
        self._places = (place, None)
        self._reached(place.number)

    def _reached(self, number: int) -> None:
        """Numbers are of the live that is followed, once what came before it is applied."""
        if self._settled == self._session:
            self._does(self._copying.reached(number))

    def _has_settled(self, session: int) -> None:
        self._settled = session

    def _has_failed(self, error: Error) -> None:
        """What it has cannot be gone on with: it asks for all, if that may help."""
        self._tell({"event": "replica", "level": "error", "state": "failed", "reason": str(error)})
        self._places = (None, None)
        self.link.break_off(str(error))
        if not isinstance(error, (JournalDamaged, MessageGone)):
            self._failure = str(error)
            self.link.end()

    def _does(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Say):
                if self.link.attached is not None:
                    self.link.attached.say(action.frame)
            elif isinstance(action, Apply):
                self._applying.apply(bytes(action.frames))
            elif isinstance(action, GoOn):
                if action.place != self._places[0]:
                    self._applying.go_on(action.place)
                self._settle()
            elif isinstance(action, Discard):
                self._places = (None, None)
                self._applying.discard()
                self._settle()
            elif isinstance(action, Became):
                self._became(action.state)

    def _settle(self) -> None:
        session = self._session
        self._applying.then(lambda: self._thread.call(lambda: self._has_settled(session)))

    def _became(self, state: str) -> None:
        if self._copying.may_take_over:
            self._applying.prepare()
        self._tell({"event": "replica", "level": "info", "state": state,
                    "reason": self._copying.why if state == "waiting" else ""})  # fmt: skip

    # --- of the thread that applies -----------------------------------------------------------

    def _remake(self) -> Warm:
        saved = set_aside(self._store, self.terms.saved_journals)
        if saved is not None:
            self._tell({"event": "replica", "level": "warning", "state": "set aside",
                        "reason": f"what it had is in {saved}"})  # fmt: skip
        return self._make()

    def _synced(self, place: Place) -> None:
        self._thread.call(lambda: self._has_synced(place))

    def _failed(self, error: Error) -> None:
        self._thread.call(lambda: self._has_failed(error))
