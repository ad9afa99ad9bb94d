"""A member of a replicated node: events and a time in, actions out.

`passive.py` is what it does while it does not serve, `serving.py` while it does, `draining.py`
while it gives all away instead.  Times are seconds of one clock that only rises and counts time
spent asleep.

Its journal tells it: `wrote` (a frame was appended here), `began` (that was `Began`), `synced`,
`took` and `copied` (frames of the live it follows), `left`.  Of replicas it is told: `can_count`,
`has`.
"""

from __future__ import annotations

from dataclasses import replace

from shmbroker.netbridge.election.candidate import Electorate
from shmbroker.netbridge.member.action import Action, Alert
from shmbroker.netbridge.member.core import NEVER, NOT_SINCE
from shmbroker.netbridge.member.draining import Draining, Phase
from shmbroker.netbridge.member.options import CONTINUE_ALONE
from shmbroker.netbridge.member.said import Dropped, Hello, Said
from shmbroker.netbridge.member.standing import (
    ENDING,
    FOLLOWING,
    LOOKING,
    SERVING,
    Position,
    Record,
    State,
)


class Member(Draining):
    fresh_node = b""
    """The node id of a node that it founds."""

    # --- other members ------------------------------------------------------------------------

    def peer_up(self, member: str, now: float) -> list[Action]:
        """A link to it, over which it is told everything in order."""
        self.links.add(member)
        self.proven.discard(member)  # or a later process of it
        self.lives.pop(member, None)
        self.tell(member, self.hello)
        self.refusers -= {member}
        if self.state is State.REFUSED:  # it knows the password by now
            self._is_let_in(now)
        return self.done()

    def peer_down(self, member: str, now: float) -> list[Action]:
        self.links.discard(member)
        self.peers.pop(member, None)
        self.asked.pop(member, None)
        self.let_by -= {member}
        if self.options.on_partition == CONTINUE_ALONE:
            self.let_ahead -= {member}
        if self.state in SERVING:
            self.lose_replica(member, "its link is lost", now)
            return self.done()
        if self.state in FOLLOWING | LOOKING | {State.STARTING}:
            self.looks_around()
        if self.state in FOLLOWING and member == self.live:
            self._lost_live(now)
        elif member == self.live:
            self.joins_later(now)
        return self.done()

    def heard(self, member: str, what: Said, now: float) -> list[Action]:
        if isinstance(what, Hello):
            self.peers[member] = what
            self.lives[member] = what.life
        if self.state in SERVING or self.state is State.BEGINNING:
            self.serving_heard(member, what, now)
        else:
            self.passive_heard(member, what, now)
        return self.done()

    # --- its journal --------------------------------------------------------------------------

    def appended(self, last: Position, record: Record | None, now: float) -> list[Action]:
        self.wrote(last, record, now)
        return self.done()

    def has_begun(self, last: Position, now: float) -> list[Action]:
        self.began(last, now)
        return self.done()

    def has_synced(self, number: int, now: float) -> list[Action]:
        self.synced(number, now)
        return self.done()

    def held(self, last: Position, now: float) -> list[Action]:
        """This is the last frame; it is synced, unless the disk takes nothing."""
        self.journal_held(last, now)
        return self.done()

    def replica_has(self, member: str, stream: int, number: int, now: float) -> list[Action]:
        self.has(member, stream, number, now)
        return self.done()

    def awaits(self, member: str) -> bool:
        """Whether what this replica confirms next may change more than how far it is: each frame is
        confirmed, and almost none of them is waited for here."""
        follower = self.followers.get(member)
        if follower is None or self.state is not State.LIVE or self.phase is not Phase.NONE:
            return True
        # one that leaves may be dropped by now, and confirms wait for it until it is
        leaves = any(each.is_leaving for each in self.followers.values())
        is_steady = self.granted is None and not (self.lists or self.is_broken or leaves)
        has_all = follower.is_announced and follower.has >= self.end
        return not (is_steady and has_all)

    def replica_can_count(self, member: str, stream: int, now: float) -> list[Action]:
        """Confirms wait for it as soon as it is counted."""
        self.follows_closely(member, stream, now)
        return self.done()

    def replica_failed(self, member: str, why: str, now: float) -> list[Action]:
        """Nothing more can be shipped to it as it follows now."""
        if self.state in SERVING and member in self.followers:
            self.tell(member, Dropped(why))
            self.lose_replica(member, why, now)
        return self.done()

    def wants_replicated(self, now: float) -> list[Action]:
        """A program asks for this level by name."""
        self.runs_ahead(now)
        return self.done()

    def cannot_write(self, now: float) -> list[Action]:
        self.disk_failed(now)
        return self.done()

    def can_write(self, now: float) -> list[Action]:
        self.disk_works(now)
        return self.done()

    def isolated(self, why: str, now: float) -> list[Action]:
        """`network-check`: it reaches none of its peers; empty: it reaches one again."""
        if why == self.isolation:
            return self.done()
        former, self.isolation = self.isolation, why
        was_in_doubt = former == NOT_SINCE
        if why or not was_in_doubt:
            self.log(Alert.ISOLATED if why else Alert.REACHES, why)
        at = now if was_in_doubt else now + self.meet_seconds
        is_held = self.state is State.HELD and self.why == former
        is_about_to = self.state is State.ASKING and self.options.electorate is None
        if why and (is_held or is_about_to):
            self.becomes(State.HELD, why)
        elif is_held:
            self.goes_on(at)
        elif not why:
            self.reaches(at)
        return self.done()

    # --- voters that come and go --------------------------------------------------------------

    def voters_are(self, electorate: Electorate, now: float) -> list[Action]:
        """Of a cluster: the other lives, as far as they are known."""
        if electorate == self.options.electorate:
            return self.done()
        self.options = replace(self.options, electorate=electorate)
        self.lease.needed = electorate.needed
        self.lease.voters_are(electorate.voters)
        for voter in self.voters - set(electorate.voters):
            self.voters.discard(voter)
            self.lease.ended(voter)
        if self.candidate is not None:
            self._vote(self.candidate.voters_are(electorate, now), now)
        self.voters_told(now)
        return self.done()

    def gave(self, epoch: int, now: float, *, is_whole: bool) -> list[Action]:
        """`Drain` has ended."""
        self.has_given(epoch, is_whole=is_whole, now=now)
        return self.done()

    # --- people, and the host -----------------------------------------------------------------

    def stop(self, now: float, *, hands_over: bool = True) -> list[Action]:
        self.is_stopping = True
        if self.state in SERVING:
            self.stop_serving(hands_over=hands_over, now=now)
        elif self.state not in (State.LEAVING, State.STOPPED, State.FAILED):
            self.leave()
        return self.done()

    def hands_over(self, member: str, now: float) -> list[Action]:
        self.hand_over(member, now)
        return self.done()

    def continues(self, now: float) -> list[Action]:
        self.go_on_alone(now)
        return self.done()

    def yields(self, now: float) -> list[Action]:
        """`ha yield`: of two that were forced to the same epoch."""
        if self.state is State.CONFLICT:
            self._join_later(State.FENCED, now, "it has yielded")
        return self.done()

    def died(self, member: str, now: float) -> list[Action]:
        """The kernel says so: its process ran on this host."""
        if self.state in SERVING:
            self.replica_proven_dead(member, now)
        else:
            self.death_proven(member, now)
        return self.done()

    def runs_command(self, has_command: bool) -> None:
        """From now on, before it takes over."""
        self.options = replace(self.options, has_command=has_command)

    def fails(self, why: str) -> list[Action]:
        """It cannot go on."""
        self.log(Alert.HELD, why)
        self._ends(State.FAILED, why)
        return self.done()

    # --- time ---------------------------------------------------------------------------------

    @property
    def deadline(self) -> float:
        if self.state in ENDING:
            return NEVER
        due = self.serving_deadline if self.state in SERVING else self.passive_deadline
        return min(due, self.candidate.deadline) if self.candidate is not None else due

    def tick(self, now: float) -> list[Action]:
        if self.state in ENDING:
            return self.done()
        self.tick_vote(now)
        if self.state is State.ASKING:
            self._look(now)
        if self.state in SERVING:
            self.serving_tick(now)
        else:
            self.passive_tick(self.fresh_node, now)
        return self.done()
