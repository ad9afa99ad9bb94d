"""The replicas of a live broker: who is followed, who counts, and what is kept for them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.follower.gates import MISSING
from shmbroker.ipc.journal.end import End as JournalEnd
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.link.ending import Reason
from shmbroker.netbridge.replica.feed import State
from shmbroker.netbridge.replica.feeding import FOREVER, Feeding
from shmbroker.netbridge.replica.terms import ReplicationTerms
from shmbroker.netbridge.wire.frame import Frame

Tell = Callable[[Mapping[str, Any]], None]
NICE = 5
"""Of the thread that reads files for newcomers: publishers wait for the journaler."""


class Consents(Protocol):
    """Who must agree before a replica counts, and before it counts no more."""

    def admit(self, name: str, boot: bytes, then: Callable[[], bool]) -> None:
        """Call `then` in the network thread once all that must know of it do.

        It says whether confirms wait for the replica from there on.
        """

    def release(self, name: str, why: str, then: Callable[[], None]) -> None: ...


class Nobody:
    """There is nobody to be asked."""

    def admit(self, name: str, boot: bytes, then: Callable[[], bool]) -> None:
        then()

    def release(self, name: str, why: str, then: Callable[[], None]) -> None:
        then()


class Replication(Closable):
    """Serves the links of replicas, of a listener that gets it as `replicates`."""

    def __init__(
        self,
        thread: NetworkThread,
        journaler: Journaler,
        folder: Path,
        terms: ReplicationTerms | None = None,
        *,
        consents: Consents | None = None,
        tell: Tell = lambda _: None,
        awaits: bool = False,
    ) -> None:
        """`folder`: of the journal.  Close it before thread and journaler."""
        self.thread, self.journaler, self.folder = thread, journaler, folder
        self.terms = terms or ReplicationTerms()
        self.worker = Worker(thread.call, nice=NICE)
        self.due = math.inf
        self.anew: set[str] = set()
        self._consents = consents or Nobody()
        self._tell = tell
        self._feedings: dict[End, Feeding] = {}
        self._left: list[Feeding] = []
        """Their links have ended, and not everybody has agreed yet."""
        self._in_sync: tuple[str, ...] = ()
        self.awaits = awaits
        """Those that were there before: nothing is confirmed without them."""
        self._missing: JournalEnd | None = None
        """Stands for those that are needed and not in sync: it is never done with anything."""
        self.keep()
        thread.ask(self._begin)

    def _begin(self) -> None:
        self.thread.members.append(self)
        self._hold()

    def close(self) -> None:
        """Nothing waits for replicas any more."""
        self.thread.ask(self.end)
        self.worker.close()
        self.thread.ask(lambda: None)  # behind what the worker has told: its files are closed there

    def end(self) -> None:
        if self in self.thread.members:
            self.thread.members.remove(self)
            for each in (*self._feedings.values(), *self._left):
                each.ends()
            self._feedings.clear()
            self._left.clear()
            if self._missing is not None:
                self._missing.close()
                self._missing = None

    # --- from any thread ----------------------------------------------------------------------

    @property
    def in_sync(self) -> tuple[str, ...]:
        """The names of those that confirms wait for."""
        return self._in_sync

    def states(self) -> dict[str, str]:
        """What each is at present, by its name."""
        return self.thread.ask(
            lambda: {each.feed.name: each.feed.state.value for each in self._feedings.values()}
        )

    # --- of the thread ------------------------------------------------------------------------

    def woken(self, now: float) -> None:
        for each in list(self._feedings.values()):
            each.woken(now)
        self.due = min((each.feed.deadline for each in self._feedings.values()), default=math.inf)

    def came(self, end: End) -> None:
        self._feedings[end] = Feeding(self, end)

    def heard(self, end: End, frame: Frame) -> None:
        feeding = self._feedings.get(end)
        if feeding is not None:
            feeding.heard(frame)

    def gone(self, end: End) -> None:
        feeding = self._feedings.pop(end, None)
        if feeding is not None:
            feeding.gone()
            self._show()

    # --- of one of them -----------------------------------------------------------------------

    def has_place(self, feeding: Feeding) -> bool:
        others = [each for each in self._feedings.values() if each is not feeding]
        others += self._left
        taken = [each for each in others if each.feed.state not in (State.JOINING, State.OVER)]
        return len(taken) < self.terms.max_replicas

    def drop(self, feeding: Feeding, why: str) -> None:
        now = time.monotonic()
        feeding.link.does(feeding.link.machine.refuse(Reason.DROPPED, why, now))

    def keep(self) -> None:
        needs = [each.needs_from for each in self._feedings.values()]
        oldest = min((each for each in needs if each is not None), default=None)
        self.journaler.keep(oldest, self.terms.resync_bytes)

    def admit(self, feeding: Feeding, then: Callable[[], bool]) -> None:
        self._consents.admit(feeding.feed.name, feeding.feed.boot, then)

    def release(self, feeding: Feeding, why: str, then: Callable[[], None]) -> None:
        feed = feeding.feed
        self._hold(without=feeding)
        if not feeding.counts:
            then()
            self._log(feeding, "warning", "lost", why)
            return
        self._left.append(feeding)

        def released() -> None:
            if feeding in self._left:
                self._left.remove(feeding)
                then()
                self._log(feeding, "warning", "dropped", why)
                self._show()

        self._consents.release(feed.name, why, released)

    def _hold(self, without: Feeding | None = None) -> None:
        """Nothing is confirmed as long as fewer count than are needed."""
        all_of_them = (*self._feedings.values(), *self._left)
        counting = [each for each in all_of_them if each is not without and each.counts]
        is_enough = 1 + len(counting) >= self.terms.min_insync and not self.awaits
        if is_enough and self._missing is not None:
            self._missing.close()
            self._missing = None
        elif not is_enough and self._missing is None:
            self._missing = JournalEnd(
                self.journaler, MISSING, timeout=FOREVER, bytes_max=self.terms.in_flight
            )

    def became(self, feeding: Feeding) -> None:
        self._hold()
        self._show()
        self._log(feeding, "info", feeding.feed.state.value, "")

    def _show(self) -> None:
        all_of_them = (*self._feedings.values(), *self._left)
        self._in_sync = tuple(sorted(each.feed.name for each in all_of_them if each.counts))

    def _log(self, feeding: Feeding, level: str, state: str, reason: str) -> None:
        feed = feeding.feed
        self._tell({
            "event": "replica", "level": level, "replica": feed.name, "state": state,
            "reason": reason, "in_sync": list(self._in_sync),
            "confirms": "disk+replicated" if self._in_sync else "disk",
            "copied": feed.copied_bytes, "seconds": round(time.monotonic() - feed.since, 3),
        })  # fmt: skip
