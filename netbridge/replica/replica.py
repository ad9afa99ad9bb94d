"""A replica: follows the live over a link, and takes over when it is told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import InvalidArgument, JournalDamaged
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.journal.place import Place
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.ending import Ending, Reason, State
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.replica.aside import keep_newest
from shmbroker.netbridge.replica.following import Carrier, Following, remade
from shmbroker.netbridge.replica.terms import ReplicationTerms
from shmbroker.netbridge.replica.warm import Warm
from shmbroker.netbridge.security.credential import Credential
from shmbroker.netbridge.wire.frame import Frame
from shmbroker.netbridge.wire.words import Role

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
            self._replica.hears(frame)

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


class Replica(Carrier, Closable):
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
        self._is_copied = False
        """It was in sync, and began nothing anew since."""

        def make() -> Warm:
            return Warm(
                store, vhost, node=ours.node, arena_bytes=arena_bytes, group=group,
                segment_bytes=segment_bytes, resync_bytes=self.terms.resync_bytes,
            )  # fmt: skip

        self._following = Following(
            thread, store, ours.name, boot, self.terms, self._opened(make), make, self, tell
        )
        self.hears: Callable[[Frame], None] = self._following.heard
        self.link: ReplicaLink
        ReplicaLink(
            self, thread, f"replica {ours.name}"[:255], uri, credential, ours, (),
            times=times, tell=tell,
        )  # fmt: skip

    def _opened(self, make: Callable[[], Warm]) -> Warm:
        """What its store has; if that cannot be read, nothing."""
        try:
            return make()
        except (JournalDamaged, InvalidArgument) as error:
            self._tell({"event": "replica", "level": "warning", "state": "unreadable",
                        "reason": str(error)})  # fmt: skip
            return remade(self._store, make, self._tell)

    # --- from any thread ----------------------------------------------------------------------

    @property
    def state(self) -> str:
        return "failed" if self._following.failure else self._following.copying.state.value

    @property
    def may_take_over(self) -> bool:
        """It has all that was confirmed with it; whether it may is not decided here."""
        return not self._following.failure and self._following.copying.may_take_over

    @property
    def has(self) -> int:
        """The last frame of the live that it has said to have."""
        return self._following.copying.has

    def take_over(
        self,
        epoch: int,
        *,
        force: bool = False,
        serves: Callable[[Broker], object] = lambda _: None,
    ) -> tuple[Broker, Journaler]:
        """Everybody sees its rings, and it writes its journal: broker and journaler are the
        caller's to close, journaler first.  `epoch`: granted, and above that of the live.

        `serves`: called as soon as it does; what it had to know as a replica goes after that.
        """
        if not (self.may_take_over or force):
            raise InvalidArgument(f"the replica is {self.state}, and not in sync")
        warm = self._ended()
        if warm is None:
            raise InvalidArgument("the replica has nothing: it was about to begin anew")
        made = warm.take_over(epoch, of_another=True)
        serves(made[0])
        warm.let_go()
        return made

    def close(self) -> None:
        """Its rings go; its journal stays, and it can go on with that."""
        warm = self._ended()
        if warm is not None:
            warm.close()

    def _ended(self) -> Warm | None:
        self._thread.ask(self.link.end)
        return self._following.stop()

    # --- of the network thread ----------------------------------------------------------------

    def link_is_up(self) -> None:
        self._following.up()

    def link_is_lost(self) -> None:
        self._following.lost()

    def say(self, frame: Frame) -> None:
        if self.link.attached is not None:
            self.link.attached.say(frame)

    def break_off(self, why: str) -> None:
        self.link.break_off(why)

    def failed(self, why: str) -> None:
        self.link.end()

    def discards(self) -> bool:
        self._is_copied = False
        return True

    def applied(self, place: Place, standing: bytes) -> None:
        counts_from = self._following.copying.counts_from
        if not self._is_copied and 0 < counts_from <= place.number:
            self._is_copied = True
            most = self.terms.saved_journals
            threading.Thread(target=keep_newest, args=(self._store, most), daemon=True).start()
