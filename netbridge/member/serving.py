"""A member that serves: its votes, its end, and handing over.

    ALONE <--nobody is in sync / somebody is--> LIVE
    LIVE         --a replica that counts is lost-->  SUSPENDED, and ALONE when it may go on
    LIVE, ALONE  --stopped, or failback-->           HANDING_OVER
    any          --somebody has a higher epoch-->    FENCED

`replicas.py` has what it does while nothing of that happens.
"""

from __future__ import annotations

from shmbroker.netbridge.election.question import Copy, Grant
from shmbroker.netbridge.member.action import (
    Alert,
    End,
    GoOn,
    Hold,
    StopServing,
    Write,
)
from shmbroker.netbridge.member.core import NEVER, Purpose, granted
from shmbroker.netbridge.member.follower import Follower
from shmbroker.netbridge.member.replicas import Replicating
from shmbroker.netbridge.member.said import (
    Accept,
    AskBack,
    Closing,
    Dropped,
    Hello,
    Join,
    Leave,
    NoFailback,
    Offer,
    Resumed,
    Said,
    TakeOver,
)
from shmbroker.netbridge.member.standing import (
    SERVING,
    Copies,
    HandedOver,
    Parked,
    Position,
    State,
)


class Serving(Replicating):
    # --- votes --------------------------------------------------------------------------------

    def won(self, grant: Grant, now: float) -> None:
        if self.purpose is Purpose.HAND_OVER and self.state is State.HANDING_OVER:
            self._handed_over(grant, now)
        elif self.state in SERVING:
            self._keeps_being_live(grant, now)
        else:
            self.passive_won(grant, now)

    def taken(self, grant: Grant, now: float) -> None:
        if self.state not in SERVING:
            self.passive_taken(grant, now)
        elif grant.holder == self.me:
            self._keeps_being_live(grant, now)
        else:
            self.held_by = grant
            self.fence(granted(grant), now)

    def _keeps_being_live(self, grant: Grant, now: float) -> None:
        """A stop comes behind that epoch's first record, and so does giving way."""
        self._next_epoch(grant)
        if self.state is State.HANDING_OVER and not self.is_stopping:
            self._abandon_hand_over("it keeps being live", now)

    def lost_vote(self, now: float) -> None:
        if self.state is State.HANDING_OVER:
            self._hand_over_by_record(now)
        elif self.state in SERVING and self.purpose is Purpose.GO_ON:
            self._stop_serving()
            if self.options.on_lost_vote == "shutdown":
                self.becomes(State.STOPPED, "the vote was lost")
                self.does(End(True, "the vote was lost"))
            else:
                self._join_later(State.JOINING, now, "the vote was lost")
        elif self.state not in SERVING:
            self.passive_lost(now)

    def postponed(self, now: float) -> None:
        """A voter is in doubt: it asks on, and stays suspended."""

    def not_renewed(self, newest: Grant, is_decided: bool, now: float) -> None:
        if self.state not in SERVING:
            return
        if is_decided and newest.holder != self.me and newest.epoch >= self.epoch:
            self.fence(granted(newest), now)
        elif self.candidate is None and self.granted is None and not self.lease.is_valid(now):
            if self.state is not State.HANDING_OVER:
                self.asks(Purpose.KEEP, Grant(self.epoch + 1, self.me, self.listed), now)

    # --- being live no more -------------------------------------------------------------------

    def fence(self, why: str, now: float) -> None:
        """Somebody has a higher epoch: nothing more is confirmed from here on."""
        self.becomes(State.FENCED, why)
        self.log(Alert.FENCED, why)
        self._stop_serving()
        self.retry_at = now
        if self.is_stopping:
            self.becomes(State.STOPPED)
            self.does(End(False))

    def _stop_serving(self, to: str = "") -> None:
        self.drop_vote()
        self.does(StopServing(to))
        self.release()
        for member in list(self.followers):
            self._forget(member)
            self.peers.pop(member, None)  # what it said was before it followed
            self.tell(member, Dropped("it serves no more", serves=False))
        self.counted, self.granted, self.final = frozenset(), None, None
        self.began_at, self.epoch = 0, self.last.epoch
        self.serves_already = False
        self.hands_until = self.goes_on_at = NEVER
        self.live = ""

    def reaches(self, at: float) -> None:
        """It is isolated no more; until then it may meet who has taken over meanwhile."""
        if self.state is State.SUSPENDED:
            self.goes_on_at = at

    def disk_failed(self, now: float) -> None:
        """What cannot write hands over, or ends."""
        if self.state not in SERVING:
            return
        self.is_broken = True
        if self.state is State.HANDING_OVER:
            self._hands_over_broken(now)
        elif not self._gives_way(now):
            self._suspend("it cannot write")

    def disk_works(self, now: float) -> None:
        """Again: what waited for the disk goes on."""
        self.is_broken = False
        if self.state is State.SUSPENDED and self.counted <= self.followers.keys():
            self.becomes(State.LIVE if self.counted else State.ALONE)
            self._progress(now)  # who has followed meanwhile may be waiting for that

    # --- handing over -------------------------------------------------------------------------

    def _hands_over_broken(self, now: float) -> None:
        """Its disk was filled meanwhile: neither the end of its journal nor a last record comes."""
        self.is_held = True
        if self.final is None:
            self._drain(now)
        elif self.hand_to and self.options.electorate is None:
            self._hand_over_by_word(now)

    def _gives_way(self, now: float) -> bool:
        """Its disk takes nothing: to whoever is in sync, one after the other."""
        if self.is_broken and self.announced and self.state is not State.HANDING_OVER:
            self._hand_over(self.announced, now)
        return self.state is State.HANDING_OVER

    def stop_serving(self, *, hands_over: bool, now: float) -> None:
        """A graceful stop.  An epoch that is granted to it begins first."""
        self.parks = not hands_over
        if self.state in (State.LIVE, State.SUSPENDED) and self.announced:
            if self.granted is not None:
                self.hands_until = min(self.hands_until, now + self.options.handover_timeout)
            elif hands_over:
                self._hand_over(self.announced, now)
            else:
                self.final = Parked()
                self._begin_to_stop("", now)
        elif self.state is not State.HANDING_OVER:
            self._stop_serving()
            self.becomes(State.STOPPED)
            self.does(End(False))

    def hand_over(self, member: str, now: float) -> bool:
        """`ha handover`, or failback; False: it is not in sync."""
        may = self.state is State.LIVE and self.granted is None and member in self.counted
        follower = self.followers.get(member)
        if may and follower and follower.is_announced and not follower.is_leaving:
            self._hand_over(member, now)
            return True
        return False

    def _hand_over(self, member: str, now: float) -> None:
        if self.granted is None:
            self._begin_to_stop(member, now)

    def _begin_to_stop(self, member: str, now: float) -> None:
        self.drop_vote()
        self.hand_to = member
        self.hands_until = now + self.options.handover_timeout
        self.is_drained = False
        self.is_held = self.is_broken
        self.final_at = 0
        self.becomes(State.HANDING_OVER, member)
        for each in sorted(self.counted):
            self.tell(each, Closing())
        self.does(Hold())
        self._drain(now)

    def journal_held(self, last: Position, now: float) -> None:
        if self.state is State.HANDING_OVER and not self.is_held:
            self.is_held = True
            if last.number > self.end:
                self.wrote(last, None, now)
            self.synced(last.number, now)

    def _drain(self, now: float) -> None:
        """When all is confirmed, the voters are asked, or the last record says who is next."""
        if not self.is_held:
            return
        awaited = (self._has(each) for each in self.counted if self._hands_over_with(each))
        has = min(awaited, default=self.end)
        if has < self.end or (self.synced_to < self.end and not self.is_broken):
            return
        if self.final is not None:
            if self.final_at and self.final == Parked() and self.options.electorate is None:
                self.final, self.final_at = Parked(all_know=True), 0
                self.does(Write(self.final))
            elif self.final_at:
                self._handed_over(None, now)
            elif not self.is_drained and self._outlives_its_boot():
                self.is_drained = True
                self.does(Write(self.final))
        elif not self.is_drained:
            self.is_drained = True
            self.tell(self.hand_to, Offer())

    def _hands_over_with(self, member: str) -> bool:
        """It waits until this one has all."""
        if not self.hand_to or member == self.hand_to:
            return True
        follower = self.followers.get(member)
        if self.is_broken or (follower is not None and follower.is_leaving):
            return False  # what was confirmed every one has, and who leaves begins nothing
        # voters that could not be asked for it may grant the next epoch to one that is lost
        could_begin = self.final is not None and self.options.electorate is not None
        return follower is not None or could_begin

    def _accepted(self, member: str, now: float) -> None:
        """It is there.  Who is gone, and is granted an epoch, keeps everybody else from it."""
        is_asked = self.state is State.HANDING_OVER and self.is_drained and member == self.hand_to
        is_decided = self.granted is not None or self.final is not None
        if not is_asked or self.candidate is not None or is_decided:
            return
        if self.options.electorate is None and self.is_broken:
            self._hand_over_by_word(now)
        elif self.options.electorate is None:
            self._hand_over_by_record(now)
        else:
            grant = Grant(self.epoch + 1, self.hand_to, (self._copy(self.hand_to),))
            self.asks(Purpose.HAND_OVER, grant, now)

    def _outlives_its_boot(self) -> bool:
        """The list says so before the group is parked, or a restart of this host keeps it waiting.

        Confirms may have been ahead of this disk before; now all of it is synced.
        """
        lasting = Copy(self.me)
        if lasting not in self.listed:
            if lasting not in self.copies:
                others = tuple(each for each in self.copies if each.member != self.me)
                self.copies = (lasting, *others)
                self.does(Write(Copies(self.copies)))
            return False
        electorate = self.options.electorate
        if electorate is None or len(self.voters) < electorate.needed:
            return True
        return self.lease.is_told(self.epoch, self.version)

    def _copy(self, member: str) -> Copy:
        return next(copy for copy in self.copies if copy.member == member)

    def _hand_over_by_record(self, now: float) -> None:
        """No majority answers, or nobody can be asked: every replica that counts has it first."""
        self.final, self.is_drained = HandedOver(self.hand_to), True
        self.does(Write(self.final))

    def _hand_over_by_word(self, now: float) -> None:
        """Its disk takes no record, and nobody can be asked.  Its own journal does not say so: who
        was told says that it becomes live, and this member has to meet it before it begins."""
        grant = Grant(self.epoch + 1, self.hand_to, (self._copy(self.hand_to),))
        self._handed_over(grant, now)

    def _handed_over(self, grant: Grant | None, now: float) -> None:
        to = self.hand_to
        if grant is not None:
            self.tell(to, TakeOver(grant))
        self.log(Alert.HANDED_OVER, to or "nobody: parked")
        self._stop_serving(to)
        goes_on = not (self.is_stopping or self.is_broken) and self.options.restart_backup
        if goes_on:
            self._join_later(State.JOINING, now)
            self.purpose = Purpose.TAKE_OVER
        else:
            self.becomes(State.STOPPED)
            self.does(End(False))

    def _hands_over_without(self, member: str, how: str, now: float) -> bool:
        """False: that is abandoned, because it is not a stop, or needs this one."""
        if self.is_stopping and not self._hands_over_with(member):
            self._drain(now)
            return True
        self._abandon_hand_over(f"{member} {how}", now)
        return False

    def _abandon_hand_over(self, why: str, now: float) -> None:
        """It goes on as it was; a stop ends as a crash does."""
        has_asked = self.candidate is not None and not self.candidate.may_be_dropped
        if self.is_stopping or has_asked or self.final is not None:
            self._stop_serving()
            if self.is_stopping:
                self.becomes(State.STOPPED, why)
                self.does(End(True, why))
            else:
                self._join_later(State.JOINING, now, why)
            return
        self.drop_vote()
        self.hands_until = NEVER
        self.does(GoOn())
        self.becomes(State.LIVE if self.counted else State.ALONE)
        for member in sorted(self.counted):
            self.tell(member, Resumed())
        if self.is_broken and not self._gives_way(now):
            self._suspend("it cannot write")

    def _asked_back(self, member: str, now: float) -> None:
        if not self.options.allow_failback:
            self.tell(member, NoFailback("allow-failback is false"))
        elif self.counted != {member}:
            self.tell(member, NoFailback("another backup is in sync"))
        elif self.hand_over(member, now):
            self.log(Alert.FAILBACK_AGREED, member)

    # --- what members say, and time -----------------------------------------------------------

    def serving_heard(self, member: str, what: Said, now: float) -> None:
        if isinstance(what, Join):
            self._join(member, what, now)
        elif isinstance(what, Leave):
            self._leaves(member, now)
        elif isinstance(what, AskBack):
            self._asked_back(member, now)
        elif isinstance(what, Accept):
            self._accepted(member, now)
        elif isinstance(what, Hello):
            self._met_another(member, what, now)

    def _met_another(self, member: str, hello: Hello, now: float) -> None:
        if hello.node != self.node:
            if hello.serves:
                theirs, ours = hello.node.hex(), self.node.hex()
                self.log(Alert.CONFLICT, f"{member} serves node {theirs}, and this one {ours}")
            return
        is_granted = self.granted is not None and self.options.electorate is not None
        if self.is_over(hello.epoch, hello.last):
            self.fence(f"{member} has epoch {hello.epoch}", now)
        elif hello.serves and hello.epoch == self.epoch and not is_granted:
            self._same_epoch(member, hello, now)
        elif hello.serves:
            self.tell(member, self.hello)

    def _same_epoch(self, member: str, hello: Hello, now: float) -> None:
        """Both serve: after a partition without voters, or both were forced."""
        why = f"{member} serves epoch {hello.epoch}, too"
        if self.is_forced and hello.is_forced:
            self.log(Alert.CONFLICT, why)
            self._stop_serving()
            self.becomes(State.CONFLICT, why)
        elif (self.options.rank(member), member) < (self.options.rank(self.me), self.me):
            self.log(Alert.CONFLICT, why)
            self.fence(why, now)
        else:
            self.log(Alert.CONFLICT, why)
            self.tell(member, self.hello)

    @property
    def serving_deadline(self) -> float:
        due = [self.hands_until, self.goes_on_at]
        if self.holds_until:
            due.append(self.holds_until)
        if self.options.electorate is not None:
            due.append(self.lease.due_at)
        for follower in self.followers.values():
            if follower.has < self.end and not follower.is_leaving:
                due.append(follower.since + self._patience(follower))
        return min(due)

    def _patience(self, follower: Follower) -> float:
        is_counted = follower.member in self.counted
        return self.options.replica_timeout if is_counted else self.options.sync_timeout

    def serving_tick(self, now: float) -> None:
        if now >= self.ticked_at + self.options.lease / 2:  # it was paused
            self.steady_from = now + self.options.lease
        self.ticked_at = now
        if now >= self.lease.due_at:
            self.renew(self.voters, now)
        if now >= self.holds_until:
            self.holds_until = 0.0
        if now >= self.goes_on_at:
            self.goes_on_at = NEVER
            is_lost = bool(self.counted - self.followers.keys()) and self.granted is None
            if self.state is State.SUSPENDED and is_lost:
                self._go_on(now)
        if now >= self.hands_until:
            self._abandon_hand_over("handover-timeout", now)
        for follower in list(self.followers.values()):
            late = now >= follower.since + self._patience(follower)
            if follower.has < self.end and late and not follower.is_leaving:
                self.tell(follower.member, Dropped("no progress"))
                self.lose_replica(follower.member, "no progress", now)
