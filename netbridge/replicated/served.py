"""What a live has: the rings that programs see, who writes their journal, and who follows it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from shmbroker.ipc.base.errors import ConnectionClosed, Error
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.broker.serving import Serving
from shmbroker.ipc.broker.store_writer import StoreWriter
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.instance import moving, repairing
from shmbroker.ipc.paging.pager import Pager
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.replica.aside import JOURNAL
from shmbroker.netbridge.replica.feeding import Feeding
from shmbroker.netbridge.replica.live import Consents, Replication
from shmbroker.netbridge.replica.terms import ReplicationTerms
from shmbroker.netbridge.replica.warm import Warm
from shmbroker.netbridge.replicated.process import now
from shmbroker.netbridge.replicated.store import OVER, Store
from shmbroker.netbridge.wire.frame import Frame, Reached

Tell = Callable[[Mapping[str, Any]], None]
SOON_SECONDS = 0.05
"""When repairs begin: they look at each message that is queued.  Who waits at a takeover is mostly
confirmed by then, and they would take the processor from that."""
LATER_SECONDS = 1.0
"""When it lets go of what a replica had to know: programs come at first, and that takes a processor
for ten milliseconds and more."""


class WatchesReplicas(Consents, Protocol):
    """Called in the network thread."""

    def replica_has(self, member: str, number: int) -> None:
        """All frames up to this one."""

    def replica_over(self, member: str, why: str) -> None:
        """Nothing more is shipped to it."""


class WatchesJournal(Protocol):
    def journal_told(self) -> None:
        """In the network thread."""

    def journal_is(self, failure: Error | None) -> None:
        """It waits for room, works again, or has ended; in a thread of its own."""


class Followers(Replication):
    """Who follows is decided by the machine, and the links stay when nobody does."""

    def __init__(self, watches: WatchesReplicas, *given: Any, **named: Any) -> None:
        self._watches = watches
        self._members: dict[str, End] = {}
        self._count = 0
        super().__init__(*given, consents=watches, **named)

    def ship(self, member: str, end: End) -> None:
        """It is about to say where its journal ends."""
        self.stop(member)
        self._count += 1
        self._members[member] = end
        self._feedings[end] = Feeding(self, end, f" {self._count}")

    def awaits_backups(self, awaits: bool) -> None:
        if awaits != self.awaits:
            self.awaits = awaits
            self._hold()

    def reloaded(self, terms: ReplicationTerms) -> None:
        self.terms = terms
        for each in self._feedings.values():
            each.feed.terms = terms
        self._hold()

    def stop(self, member: str) -> None:
        end = self._members.pop(member, None)
        if end is not None:
            self.gone(end)

    def sent(self, member: str, frame: Frame) -> None:
        end = self._members.get(member)
        if end is None:
            return
        self.heard(end, frame)
        feeding = self._feedings.get(end)
        if isinstance(frame, Reached) and feeding is not None:
            self._watches.replica_has(member, feeding.feed.has)

    def has(self, member: str) -> int:
        end = self._members.get(member)
        return self._feedings[end].feed.has if end in self._feedings else 0

    def lag(self, member: str) -> dict[str, object]:
        """How far a replica is behind, and how much was copied to it."""
        end = self._members.get(member)
        feeding = self._feedings.get(end) if end is not None else None
        if feeding is None:
            return {}
        feed = feeding.feed
        return {
            "state": feed.state.value,
            "lag-bytes": feed.lag_bytes,
            "lag-ms": round(1000 * feed.lag_seconds(time.monotonic()), 1),
            "copied-bytes": feed.copied_bytes,
        }

    # --- of one of them -----------------------------------------------------------------------

    def has_place(self, feeding: Feeding) -> bool:
        return True

    def drop(self, feeding: Feeding, why: str) -> None:
        for member, end in list(self._members.items()):
            if end is feeding.link:
                del self._members[member]
                self._feedings.pop(end, None)
                self._watches.replica_over(member, why)

    def holds(self, members: Iterable[str]) -> bool:
        """Confirms wait for each of them, be it for an end whose link is lost."""
        all_of_them = (*self._feedings.values(), *self._left)
        return {each.feed.name for each in all_of_them if each.counts}.issuperset(members)

    @property
    def somebody_counts(self) -> bool:
        return any(each.counts for each in (*self._feedings.values(), *self._left))


class Served:
    """Made and ended in a thread that may wait."""

    def __init__(
        self,
        thread: NetworkThread,
        store: Store,
        warm: Warm,
        epoch: int,
        standing: bytes,
        watches: WatchesJournal,
        watches_replicas: WatchesReplicas,
        tell: Tell,
        *,
        visible: Callable[[], None],
        awaits_backups: bool,
        of_another: bool,
        is_closed: bool = False,
    ) -> None:
        """What the member has is served from now on, and `standing` is synced.

        `visible`: called when its vhost is there, and not synced yet.  `of_another`: another member
        was live before, so what is not replicated is left out.  `is_closed`: programs get Moved.
        """
        self._thread, self._store, self._watches, self._tell = thread, store, watches, tell
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.is_over = False
        self._ends = threading.Event()
        self._serving = Serving(warm.broker)
        self._serving.until(0.0)
        self._serving.runs_ahead(False)
        self._serving.replicates(store.config.replicate)
        self._said = 0.0, True
        self._is_ahead = False
        store.allow(epoch)

        def begins(journaler: Journaler) -> None:
            journaler.watched(store.fence, None)
            self.count = journaler.standing(standing)
            journaler.tell(self._event)
            self.followers = Followers(
                watches_replicas, thread, journaler, store.path / JOURNAL, store.terms, tell=tell,
                awaits=awaits_backups,
            )  # fmt: skip

        self.broker: Broker
        self.journaler: Journaler
        self.broker, self.journaler = warm.take_over(
            epoch, begins, visible, of_another=of_another
        )
        self._pager = self._paged(epoch, is_closed=is_closed)
        self._threads = [
            threading.Thread(target=self._follow, args=(each,), daemon=True)
            for each in (self.journaler, self._pager)
        ]
        self._beside = threading.Thread(target=self._after, args=(warm,), daemon=True)
        self._beside.start()
        thread.call(lambda: thread.watch(self._event, self._told))

    def _paged(self, epoch: int, *, is_closed: bool) -> Pager:
        """Before programs are heard: they may declare what pages."""
        store = self._store
        try:
            if is_closed:
                moving.departs(store.config.vhost, "", self.broker)
            return Pager(self.broker, store.pages, epoch=epoch, fence=store.fence)
        except BaseException:
            store.allow(OVER)  # first: it writes nothing more
            self.journaler.stop()
            raise

    def _told(self) -> None:
        os.eventfd_read(self._event)
        self._watches.journal_told()

    def _follow(self, writer: StoreWriter) -> None:
        for failure in writer.changes():
            if not self.is_over:
                self._watches.journal_is(failure)

    def _after(self, warm: Warm) -> None:
        """What may come after programs are served."""
        for each in self._threads:
            each.start()
        if not self._ends.wait(SOON_SECONDS):
            threading.Thread(target=self._repair, daemon=True).start()
        self._ends.wait(LATER_SECONDS)
        warm.let_go()

    def _repair(self) -> None:
        def repair() -> None:
            if repaired := self.broker.repair_for():
                self._tell({"event": "repaired what a participant left", "state": "",
                            "repairs": repaired})  # fmt: skip

        def warn(why: str) -> None:
            self._tell({"event": "warning", "state": "", "why": why})

        with suppress(ConnectionClosed):
            repairing.for_ever(repair, warn)

    # --- what programs may have -----------------------------------------------------------------

    def serves(self, until: float, *, disk_alone: bool) -> None:
        """In the network thread: durable messages are delivered until then."""
        said = until, disk_alone
        if said == self._said or self.is_over:
            return
        was_over = self._said[0] <= now()
        self._said = said
        self._serving.until(until, disk_alone=disk_alone)
        if was_over:
            self.journaler.serves()

    def runs_ahead(self, may: bool) -> None:
        """In the network thread: replicas confirm what the disk here lacks."""
        if may != self._is_ahead and not self.is_over:
            self._is_ahead = may
            self._serving.runs_ahead(may)

    @property
    def asks_ahead(self) -> bool:
        return not self.is_over and self._serving.asks_ahead

    # --- being live no more -------------------------------------------------------------------

    def fence(self) -> None:
        """In the network thread: nothing is delivered, written and confirmed any more."""
        self.is_over = True
        self._serving.until(0.0)
        self.journaler.hold(True)
        self._store.allow(OVER)

    def end(self) -> None:
        """The rings go with it.  What no replica has is confirmed by nobody."""
        self.is_over = True
        self._ends.set()
        self.journaler.stop()
        self._pager.stop()
        for each in (self._beside, *self._threads):
            each.join()
        self._thread.ask(lambda: self._thread.unwatch(self._event))
        self.followers.close()
        self._pager.close()
        self.broker.close()
        self.journaler.close()
        os.close(self._event)
