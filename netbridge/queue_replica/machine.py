"""One replica, from the order to follow until it is detached: events and a time in, actions out.

    SYNCING         it was asked for, or is being brought to a moment; shows what it had before
    FOLLOWING       it has been brought to a moment on this link, and its original knows
    DISCONNECTED    there is no link; its content stays
    REFUSED         the other broker does not let it follow: it is asked again
    FAILED          it cannot take what comes: it begins anew after a while
    SOURCE_DELETED  there is no original any more: it is asked again, and the replica may be deleted

What it is a replica of is the identity of the original.  With another one, or with positions that
the original never had, it begins anew; else it goes on where it is, and only the difference comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final

from shmbroker.netbridge.queue_replica.action import (
    Action,
    Became,
    Begin,
    GiveUp,
    GoOn,
    LetDelete,
    Say,
    Stop,
)
from shmbroker.netbridge.queue_replica.told import Chain, Follow, Follows, Leave, Unserved, Why

Steps = Iterator[Action]
NEVER: Final = float("inf")
ASK_SECONDS: Final = 1.0
"""How often an original that is not served is asked for again."""
ANEW_SECONDS: Final = 10.0
"""After a failure."""
NOTHING: Final = b""


class State(Enum):
    SYNCING = "syncing"
    FOLLOWING = "following"
    DISCONNECTED = "disconnected"
    REFUSED = "refused"
    FAILED = "failed"
    SOURCE_DELETED = "source-deleted"


class Replica:
    def __init__(
        self, number: int, queue: str, identity: bytes = NOTHING, node: bytes = NOTHING
    ) -> None:
        """`identity`: of what it has followed before; `node`: the broker that it is of."""
        self.number, self.queue, self.identity = number, queue, identity
        self._former = identity
        """What it has followed before it was told to begin anew."""
        self.node = node
        self.chain: Chain = ()
        """What it follows, and what that follows in turn, as far as it is known."""
        self.state = State.DISCONNECTED
        self.why = ""
        self.due = NEVER
        """When `tick` is to be called."""
        self._is_linked = False
        self._is_let: bool | None = False if identity == NOTHING else None
        """Somebody may delete it; None: not known, because another process has said so."""
        self._stale = NOTHING
        """The identity of an original that says all of it again."""

    @property
    def _has_begun(self) -> bool:
        """Its queue is closed for others: it is not given up before it is detached."""
        return (self.identity or self._stale) != NOTHING

    # --- the link -----------------------------------------------------------------------------

    def linked(self, next: int) -> Steps:
        """`next`: all below this position is known here."""
        self._is_linked = True
        yield from self._ask(next)

    def lost(self, why: str) -> Steps:
        self._is_linked = False
        self.due = NEVER
        if self.state in (State.SYNCING, State.FOLLOWING, State.DISCONNECTED):
            yield from self._become(State.DISCONNECTED, why)

    def refused(self, why: str) -> Steps:
        """The other broker does not take the link."""
        self._is_linked = False
        yield from self._become(State.REFUSED, why)

    def tick(self, next: int, now: float) -> Steps:
        """At the time of `due`."""
        if now >= self.due:
            self.due = NEVER
            if self._is_linked:
                yield from self._ask(next)

    def _ask(self, next: int) -> Steps:
        if self.state not in (State.SOURCE_DELETED, State.REFUSED):  # until it is answered
            yield from self._become(State.SYNCING, "")
        yield Say(Follow(self.number, self.queue, self.identity, next if self.identity else 0))

    # --- what the original says ---------------------------------------------------------------

    def follows(self, said: Follows, next: int, now: float) -> Steps:
        if not self._is_linked or self.state in (State.FOLLOWING, State.FAILED):
            return
        self.chain = said.chain
        if self._is_ring:
            yield from self._in_ring(now)
            return
        is_other = said.identity != self.identity
        if is_other or said.begins != next:
            saves = is_other and said.identity != self._stale
            self._former, self.identity = self.identity, said.identity
            yield Begin(said.identity, said.begins, said.apart_ns, saves, said.is_durable)
        else:
            yield GoOn(said.apart_ns)
        if self._is_let is not False:
            self._is_let = False
            yield LetDelete(False)
        yield from self._become(State.SYNCING, "")

    def chained(self, chain: Chain, now: float) -> Steps:
        self.chain = chain
        if self._is_ring and self.state in (State.SYNCING, State.FOLLOWING):
            yield from self._in_ring(now)

    @property
    def _is_ring(self) -> bool:
        return any(each.node == self.node for each in self.chain)

    def _in_ring(self, now: float) -> Steps:
        names = ", which follows ".join(each.name for each in self.chain)
        why = f"a ring of replicas: {self.queue!r} would follow {names}"
        if not self._has_begun:
            yield Say(Leave(self.number))
            yield GiveUp(why)
        else:
            yield from self.fails(why, now)

    def unserved(self, said: Unserved, now: float) -> Steps:
        if not self._is_linked:
            return
        if not self._has_begun:
            self.due = NEVER
            yield GiveUp(said.detail)
            return
        self.due = now + ASK_SECONDS
        yield Stop()
        if said.why is not Why.MISSING:
            yield from self._become(State.REFUSED, said.detail)
            return
        if not self._is_let:
            self._is_let = True
            yield LetDelete(True)
        yield from self._become(State.SOURCE_DELETED, said.detail)

    def counted(self) -> Steps:
        """All that the original had at a moment is here, and the original knows it."""
        if self.state is State.SYNCING and self._is_linked:
            yield from self._become(State.FOLLOWING, "")

    def stale(self) -> Steps:
        """The original has lost, with its host, what it had said before: all of it comes again."""
        self._stale, self.identity = self.identity, NOTHING
        yield Stop()
        if self._is_linked:
            yield Say(Leave(self.number))
            yield from self._ask(0)

    # --- here ---------------------------------------------------------------------------------

    def not_begun(self, why: str, now: float) -> Steps:
        """It could not begin anew, and has what it had: that is saved the next time."""
        self.identity = self._former
        yield from self.fails(why, now)

    def fails(self, why: str, now: float) -> Steps:
        """It cannot take what comes."""
        self.due = now + ANEW_SECONDS
        yield Stop()
        if self._is_linked:
            yield Say(Leave(self.number))
        yield from self._become(State.FAILED, why)

    def detach(self) -> Steps:
        """Nobody has to be asked."""
        self.due = NEVER
        yield Stop()
        if self._is_linked:
            yield Say(Leave(self.number))

    def _become(self, state: State, why: str) -> Steps:
        if (state, why) != (self.state, self.why):
            self.state, self.why = state, why
            yield Became(state.value, why)
