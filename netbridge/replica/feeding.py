"""What a live does for one replica: its files are read, its journal told, as `feed.Feed` says."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Protocol

from shmbroker.ipc.base.errors import ConnectionClosed, Error, MessageGone
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.journal.end import End as JournalEnd
from shmbroker.ipc.journal.history import History
from shmbroker.ipc.journal.place import Place
from shmbroker.ipc.journal.shipping import Tail
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.replica.action import (
    Action,
    Attach,
    Became,
    Count,
    Done,
    Drop,
    Look,
    ReadFiles,
    Say,
)
from shmbroker.netbridge.replica.feed import Feed, State
from shmbroker.netbridge.replica.terms import ReplicationTerms
from shmbroker.netbridge.wire.frame import Frame, Join, Reached, Shipment

HEAD_ROOM: Final = 1024
NAME_BYTES: Final = 40
"""Of a replica, in the name of its end: behind it there is room for what tells two of it apart."""
FOREVER: Final = 10.0**6
"""Seconds: the machine says when a replica is late, for others may have to be asked first."""


class Live(Protocol):
    """`live.Replication`."""

    thread: NetworkThread
    worker: Worker
    journaler: Journaler
    folder: Path
    terms: ReplicationTerms
    due: float
    anew: set[str]
    """Who could not go on: the files did not have all that comes behind its last frame."""

    def has_place(self, feeding: Feeding) -> bool: ...

    def keep(self) -> None:
        """The segments that are still to be read."""

    def became(self, feeding: Feeding) -> None: ...

    def admit(self, feeding: Feeding, then: Callable[[], bool]) -> None: ...

    def release(self, feeding: Feeding, why: str, then: Callable[[], None]) -> None: ...

    def drop(self, feeding: Feeding, why: str) -> None:
        """It follows no more, and its link is there still."""


class Feeding:
    """All of it is of the network thread, but what the worker reads."""

    def __init__(self, live: Live, link: End, label: str = "") -> None:
        """`label`: told apart from others of the same replica."""
        self.live, self.link, self._label = live, link, label
        self.feed = Feed(live.terms, time.monotonic())
        self.history: History | None = None
        self.end: JournalEnd | None = None
        self.is_gone = False
        """The link has ended."""
        self._tail: Tail | None = None
        self._waiting: deque[Action] = deque()
        self._is_busy = False
        self._reads = False

    @property
    def needs_from(self) -> int | None:
        """The oldest segment that must stay for it; None: none."""
        if self.feed.state in (State.LOOKING, State.COPYING, State.FOLLOWING):
            return self.history.serial if self.history is not None and not self._reads else 0
        return None

    @property
    def counts(self) -> bool:
        """Confirms wait for it."""
        return self.end is not None and self.end.state().counts

    # --- what happens to it -------------------------------------------------------------------

    def heard(self, frame: Frame) -> None:
        now = time.monotonic()
        if isinstance(frame, Reached):
            self.does(self.feed.reached(frame, now))
        elif isinstance(frame, Join):
            self.does(self.feed.join(frame, has_place=self.live.has_place(self), now=now))

    def gone(self) -> None:
        self.is_gone = True
        self.does(self.feed.over("its link is lost"))

    def ends(self) -> None:
        """The live does: what the worker still tells changes nothing."""
        self.is_gone = True
        self._waiting.clear()
        for _ in self.feed.over("its live ends"):
            pass  # nobody is to be asked, and nobody to be told
        self.detach()

    def woken(self, now: float) -> None:
        self.does(self.feed.tick(now))

    # --- what it does -------------------------------------------------------------------------

    def does(self, actions: Iterable[Action]) -> None:
        self._waiting.extend(actions)
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._waiting:
                self._carry_out(self._waiting.popleft())
        except Error as error:  # its end was dropped, a segment is gone, ...
            self._waiting.clear()
            self._waiting.extend(self.feed.over(str(error)))
            while self._waiting:
                self._carry_out(self._waiting.popleft())
        finally:
            self._is_busy = False
        if (deadline := self.feed.deadline) < self.live.due:
            self.live.due = deadline

    def _carry_out(self, action: Action) -> None:
        if isinstance(action, Done):
            if self.end is not None:
                self.end.done(action.number)
        elif isinstance(action, Say):
            self.link.say(action.frame)
        elif isinstance(action, Look):
            self._look(action.places)
        elif isinstance(action, ReadFiles):
            self._read()
        elif isinstance(action, Attach):
            self._attach(action.after)
        elif isinstance(action, Count):
            self.live.admit(self, self._count)
        elif isinstance(action, Drop):
            self.live.release(self, action.why, self.detach)
            if not self.is_gone:
                self.live.drop(self, action.why)
        elif isinstance(action, Became):
            self.live.became(self)

    # --- out of the files ---------------------------------------------------------------------

    def _look(self, places: tuple[Place, ...]) -> None:
        self.live.keep()  # first: what is found is to stay
        folder = self.live.folder
        if self.feed.name in self.live.anew:
            places = ()

        def find() -> tuple[History, Place | None, int]:
            for place in places:
                history = History(folder)
                try:
                    is_there = history.seek(place)
                except BaseException:
                    history.close()
                    raise
                if is_there:
                    return history, history.place, history.left_bytes
                history.close()
            history = History(folder)
            return history, None, history.left_bytes

        def found(told: tuple[History, Place | None, int] | Exception) -> None:
            if isinstance(told, Exception):
                self._failed(told)
                return
            self.history, place, size = told
            if self.feed.state is State.OVER:
                self._close_history()
                return
            self.does(self.feed.found(place, size, time.monotonic()))

        self.live.worker.do(find, found)

    def _read(self) -> None:
        history = self.history
        if history is None:
            return
        self._reads = True
        self.live.worker.do(history.read, self._was_read)

    def _was_read(self, told: memoryview | Exception) -> None:
        self._reads = False
        history = self.history
        if isinstance(told, Exception):
            self._failed(told)
            return
        if history is None or self.feed.state is State.OVER:
            self._close_history()
            return
        place = history.place
        last = place.number if place is not None else 0
        if told:
            self._ship(told)
            self.live.keep()
        self.does(self.feed.read(last, len(told), time.monotonic()))

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, Error):
            raise error
        if isinstance(error, MessageGone):
            self.live.anew.add(self.feed.name)
        self.does(self.feed.over(str(error)))
        self._close_history()  # its link may have ended while that was read

    def _close_history(self) -> None:
        if self.history is not None and not self._reads:
            self.history.close()
            self.history = None

    # --- as it is written ---------------------------------------------------------------------

    def _attach(self, after: int) -> None:
        assert self.history is not None
        place = self.history.place
        assert place is not None
        now = time.monotonic()
        try:
            self.end = JournalEnd(
                self.live.journaler, f"{_short(self.feed.name)}{self._label}", timeout=FOREVER,
                after=after, counts=False, bytes_max=self.live.terms.in_flight,
            )  # fmt: skip
        except MessageGone:
            self.does(self.feed.attached(False, now))
            return
        self._tail = Tail(self.end, place.chain)
        self.live.thread.watch(self.end.fileno(), self._news)
        self.does(self.feed.attached(True, now))

    def _news(self) -> None:
        """As much as goes into a buffer: if there is more, it is readable still."""
        if (tail := self._tail) is None:
            return
        try:
            told = tail.read()
        except ConnectionClosed:
            self._fell_behind()
            return
        if not told:
            return
        self._ship(told)
        if self._tail is tail:  # else the link was lost in saying it
            self.feed.told(tail.last, len(told), time.monotonic())
            if (deadline := self.feed.deadline) < self.live.due:
                self.live.due = deadline

    def _fell_behind(self) -> None:
        self.detach()
        self.does(self.feed.fell_behind())

    def _ship(self, frames: memoryview) -> None:
        room = self.link.machine.handshake.frame_bytes - HEAD_ROOM
        if len(frames) <= room:
            self.link.say(Shipment(False, frames))
            return
        for at in range(0, len(frames), room):
            self.link.say(Shipment(at + room < len(frames), frames[at : at + room]))

    def _count(self) -> bool:
        """False: it has fallen behind, and is admitted anew when it follows again."""
        if self.end is None or self.feed.state is not State.FOLLOWING:
            return False
        try:
            number = self.end.count()
        except ConnectionClosed:
            return False  # `_news` is about to hear it, too
        self.live.anew.discard(self.feed.name)
        self._close_history()
        self.does(self.feed.counts(number, time.monotonic()))
        self.live.keep()
        return self.counts

    def detach(self) -> None:
        """Nothing waits for it any more."""
        if self.end is not None:
            self.live.thread.unwatch(self.end.fileno())
            if self._tail is not None:
                self._tail.close()
            self.end.close()
        self.end = self._tail = None
        if self.feed.state is State.OVER:
            self._close_history()


def _short(name: str) -> str:
    return name.encode()[:NAME_BYTES].decode(errors="ignore")
