"""The live's view of one replica, from its word that it is there to its end.

    JOINING  --join-->              LOOKING    which frame of ours is its last?
    LOOKING  --found, or not-->     COPYING    frames out of the files, a window at a time
    COPYING  --nothing is left-->   FOLLOWING  an end of the journal: new frames as they are written
    FOLLOWING --it has all that was there when the end was attached-->  IN_SYNC
    any      --no progress, or lost--> OVER    it counts no more

New frames are not told before the files are at their end, so nothing but the window is kept for a
newcomer, however long it takes; the files are kept instead.  The writer may be a frame ahead when
the end is to be attached: then there is that frame to be copied.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum

from shmbroker.ipc.journal.place import Place
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
from shmbroker.netbridge.replica.terms import ReplicationTerms
from shmbroker.netbridge.wire.frame import InSync, Join, Joined, Reached, Unjoined
from shmbroker.netbridge.wire.words import ReplicaAck

Steps = Iterator[Action]
NEVER = float("inf")
NOWHERE = Place(0, 0, 0, 0)


class State(Enum):
    JOINING = "joining"
    LOOKING = "looking"
    COPYING = "syncing"
    FOLLOWING = "following"
    IN_SYNC = "in sync"
    OVER = "over"


class Feed:
    def __init__(self, terms: ReplicationTerms, now: float) -> None:
        self.terms = terms
        self.state = State.JOINING
        self.name = ""
        self.ack = ReplicaAck.RECEIVED
        self.boot = b""
        self.since = now
        self.has = 0
        """The replica has all frames up to this one."""
        self.sent = 0
        """The last that was sent."""
        self.sent_bytes = self.copied_bytes = 0
        self.progress_at = now
        self._on_way: deque[tuple[int, int]] = deque()
        """The last frame and the bytes of each shipment that it does not have yet."""
        self._on_way_bytes = 0
        self._reads = False
        self._attached_at = 0
        self._counts_from = 0

    # --- what comes from the replica ----------------------------------------------------------

    def join(self, said: Join, *, has_place: bool, now: float) -> Steps:
        """`has_place`: there are fewer than may be followed at once."""
        if self.state is not State.JOINING:
            yield from self.over("it has joined already")
            return
        self.name, self.ack, self.boot = said.name, said.ack, said.boot
        if not has_place:
            self.state = State.OVER
            yield Say(Unjoined("already-replicating"))
            return
        self.state = State.LOOKING
        self.progress_at = now
        places = (
            Place(said.number, said.epoch, said.seal, said.chain),
            Place(said.own_number, said.own_epoch, said.own_seal, said.own_chain),
        )
        yield Look(tuple(each for each in places if each.number > 0))

    def reached(self, said: Reached, now: float) -> Iterable[Action]:
        number = min(said.number, self.sent)  # it may have more, of a former connection
        if self.state not in FLOWING or number < self.has:
            return self.over(f"it says that it has frame {said.number}, out of turn")
        if number == self.has:
            return ()
        self.has = number
        self.progress_at = now
        while self._on_way and self._on_way[0][0] <= number:
            self._on_way_bytes -= self._on_way.popleft()[1]
        if self.state is State.COPYING:
            return self._copy()
        done: tuple[Action, ...] = (Done(number),) if number > self._attached_at else ()
        return done if self.state is State.IN_SYNC else (*done, *self._count())

    # --- copying ------------------------------------------------------------------------------

    def found(self, after: Place | None, size: int, now: float) -> Steps:
        """The last frame that both have; None: there is none in our files.  `size`: of the rest."""
        if self.state is not State.LOOKING:
            return
        self.state = State.COPYING
        self.progress_at = now
        self.has = self.sent = after.number if after else 0
        at = after or NOWHERE
        yield Say(Joined(after is not None, at.number, at.epoch, at.seal, at.chain, size))
        yield Became(self.state.value)
        yield from self._copy()

    def _copy(self) -> Steps:
        if not self._reads and self._on_way_bytes < self.terms.window:
            self._reads = True
            yield ReadFiles()

    def read(self, last: int, size: int, now: float) -> Steps:
        """Frames up to this one were read and are sent; size 0: there are no more."""
        self._reads = False
        if self.state is not State.COPYING:
            return
        if size:
            self.copied_bytes += size
            self.told(last, size, now)
            yield from self._copy()
        elif self.sent:
            yield Attach(self.sent)
        else:
            self._reads = True  # a journal has a frame as soon as somebody is live
            yield ReadFiles()

    def attached(self, is_there: bool, now: float) -> Steps:
        """False: a frame was written meanwhile."""
        if self.state is not State.COPYING:
            return
        if not is_there:
            yield from self._copy_more()
            return
        self.state = State.FOLLOWING
        self._attached_at = self.sent
        yield from self._count()

    def _copy_more(self) -> Steps:
        if not self._reads:
            self._reads = True
            yield ReadFiles()

    def fell_behind(self) -> Steps:
        """More new frames came than may wait: out of the files again."""
        if self.state is State.FOLLOWING:
            self.state = State.COPYING
            yield from self._copy()
        else:
            yield from self.over("its end was dropped")

    # --- following ----------------------------------------------------------------------------

    def told(self, last: int, size: int, now: float) -> None:
        """Frames were sent."""
        if not self._on_way:
            self.progress_at = now
        self.sent = last
        self.sent_bytes += size
        self._on_way.append((last, size))
        self._on_way_bytes += size

    def _count(self) -> Steps:
        if self.state is State.FOLLOWING and self.has >= self._attached_at:
            yield Count()

    def counts(self, number: int, now: float) -> Steps:
        """What comes after this frame waits for it."""
        self.state = State.IN_SYNC
        self.progress_at = now
        self._counts_from = number
        yield Say(InSync(number))
        yield Became(self.state.value)

    @property
    def lag_bytes(self) -> int:
        """Of frames that were sent, and that it does not have yet."""
        return self._on_way_bytes

    def lag_seconds(self, now: float) -> float:
        return now - self.progress_at if self._on_way else 0.0

    # --- its end ------------------------------------------------------------------------------

    @property
    def deadline(self) -> float:
        """When `tick` is to be called; nothing is expected of who has all that was sent.

        A newcomer has the time of a sync up to its last step: no confirm waits for it before, and
        to make its store may take it longer than `replica-timeout`.
        """
        if not self._on_way or self.state is State.OVER:
            return NEVER
        limit = self.terms.replica_timeout
        if self.state is not State.IN_SYNC or self.has < self._counts_from:
            limit = max(limit, self.terms.sync_timeout)
        return self.progress_at + limit

    def tick(self, now: float) -> Steps:
        if now >= self.deadline:
            late = now - self.progress_at
            yield from self.over(f"no progress for {late:.3g} s, with frames on their way")

    def over(self, why: str) -> Steps:
        if self.state is not State.OVER:
            self.state = State.OVER
            yield Drop(why)


FLOWING = (State.COPYING, State.FOLLOWING, State.IN_SYNC)
