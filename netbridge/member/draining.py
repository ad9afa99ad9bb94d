"""A backup that does not serve what its live had, but gives it to another node ([ha.scale-down]).

    taken over --(an epoch, alone)--> DRAINING --all is there--> (the next epoch, empty) DRAINED
    DRAINING --it cannot go on--> GIVING_WAY --nobody follows--> (the next epoch) DRAINING

For members and voters it is the live of its node in all of these, so nobody else can be: a live
that comes back follows it, or is held.  While it drains no replica becomes in sync, so the list
names this member alone, and whoever counts later has nothing that was given away.  Once all is
elsewhere it begins an epoch with an empty journal, and hands over to the first of the other members
on the file's list as soon as that one is in sync: that one begins with nothing, as the same node.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from shmbroker.netbridge.election.question import Grant
from shmbroker.netbridge.member.action import Alert, Drain
from shmbroker.netbridge.member.core import NEVER
from shmbroker.netbridge.member.follower import Follower
from shmbroker.netbridge.member.said import Join
from shmbroker.netbridge.member.serving import Serving
from shmbroker.netbridge.member.standing import SERVING, State

AGAIN_SECONDS: Final = 10.0
"""So long whoever is in sync may take what could not be given away."""


class Phase(Enum):
    NONE = ""
    DRAINING = "draining"
    GIVING_WAY = "not drained"
    DRAINED = "drained"


class Draining(Serving):
    phase = Phase.NONE
    drains_at = NEVER
    """It tries again."""

    @property
    def is_of_cluster(self) -> bool:
        """As a live: other nodes may reach it, and it votes."""
        return self.state in SERVING and self.phase in (Phase.NONE, Phase.DRAINING)

    @property
    def original(self) -> str:
        """For whom it waits."""
        others = [each for each in self.options.members if each != self.me]
        return others[0] if others else ""

    @property
    def begins_anew(self) -> bool:
        """With the next epoch: others know that the node has left in this one, or may know it."""
        return self.has_drained or (self.options.drains and not self.is_closed)

    def _promote(self, grant: Grant) -> None:
        if self.begins_anew and self.last.holder == self.me:
            self._begin(grant)  # `on-promote` has said yes when this member took over
        else:
            super()._promote(grant)

    def _serve(self) -> None:
        self.has_drained = False
        if not self.options.drains:
            super()._serve()
        elif self.is_closed:
            self.phase = Phase.DRAINED
            self.log(Alert.DRAINED, f"waits for {self.original}")
        else:
            self.phase = Phase.DRAINING
            self.does(Drain(self.epoch))

    def _stop_serving(self, to: str = "") -> None:
        self.phase, self.drains_at = Phase.NONE, NEVER
        super()._stop_serving(to)

    def has_given(self, epoch: int, *, is_whole: bool, now: float) -> None:
        """`is_whole`: all is at another node, and noted; else the rest is here."""
        if self.phase is not Phase.DRAINING or epoch != self.epoch:
            return
        if is_whole:
            self.has_drained = True
            self._drains_again(now)
        else:
            self.phase, self.drains_at = Phase.GIVING_WAY, now + AGAIN_SECONDS
            self._progress(now)

    def _drains_again(self, now: float) -> None:
        """As a process that is started anew."""
        self._stop_serving()
        self.becomes(State.STARTING)
        self.look_until = now

    # --- those that follow --------------------------------------------------------------------

    def _refusal(self, member: str, what: Join, now: float) -> str:
        """Its place is kept for who is to have it."""
        refusal = super()._refusal(member, what, now)
        is_another = self.phase is Phase.DRAINED and member != self.original
        return refusal or ("already-replicating" if is_another else "")

    def _admit(self, follower: Follower, now: float) -> None:
        if self.phase is not Phase.DRAINING:
            super()._admit(follower, now)

    def _progress(self, now: float) -> None:
        super()._progress(now)
        self._gives_back(now)

    def voters_told(self, now: float) -> None:
        super().voters_told(now)
        self._gives_back(now)

    def _gives_back(self, now: float) -> None:
        if self.phase is Phase.DRAINED:
            self.hand_over(self.original, now)
        elif self.phase is Phase.GIVING_WAY and self.announced:
            self.hand_over(self.announced, now)

    @property
    def serving_deadline(self) -> float:
        return min(super().serving_deadline, self.drains_at)

    def serving_tick(self, now: float) -> None:
        super().serving_tick(now)
        if now >= self.drains_at:
            self.drains_at = now + AGAIN_SECONDS
            if not self.followers and self.state is State.ALONE:
                self._drains_again(now)
