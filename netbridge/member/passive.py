"""A member that does not serve: how it follows a live is in `joining`; here it finds out whether it
may serve.

STARTING --nobody serves--> BEGINNING, ASKING, HELD or JOINING (see `_start`)
IN_SYNC  --its live is lost--> ASKING, BEGINNING or HELD
ASKING   --granted--> PROMOTING --the command says yes--> BEGINNING --`Began` is synced--> ALONE
         --not granted--> JOINING
HELD     --all on the list are met, and none is newer--> BEGINNING
"""

from __future__ import annotations

from abc import abstractmethod

from shmbroker.netbridge.election.question import Copy, Grant
from shmbroker.netbridge.member.action import (
    Action,
    Alert,
    Begin,
    End,
    Promote,
    StopServing,
    Unfollow,
    WriteLeft,
)
from shmbroker.netbridge.member.core import NEVER, RANK_SECONDS, Purpose
from shmbroker.netbridge.member.joining import Joining
from shmbroker.netbridge.member.options import CONTINUE_ALONE, MemberOptions
from shmbroker.netbridge.member.said import (
    Accept,
    AskBack,
    Closing,
    Dropped,
    GoAhead,
    Hello,
    InSync,
    Joined,
    Leave,
    NoFailback,
    NotJoined,
    Offer,
    Resumed,
    Said,
    TakeOver,
    YouHold,
)
from shmbroker.netbridge.member.standing import (
    FOLLOWING,
    LOOKING,
    Past,
    State,
)


class Passive(Joining):
    def __init__(
        self, options: MemberOptions, past: Past, *, boot: str, life: str, now: float
    ) -> None:
        super().__init__(options, past, boot=boot, life=life, now=now)
        self.held_by: Grant | None = None
        """What voters have granted to another member, which does not serve yet."""
        self.is_comparing = False
        """With other backups, after the loss of the live."""

    # --- starting -----------------------------------------------------------------------------

    @property
    @abstractmethod
    def begins_anew(self) -> bool: ...

    def _start(self, fresh_node: bytes, now: float) -> None:
        """Nobody that serves was met."""
        self.look_until, self.awaits_others = NEVER, False
        self.is_parked &= not self.is_parked_for_nothing
        if self.is_new:
            self._founds(fresh_node, now)
        elif not self.is_listed or self.has_left or self.handed_to not in ("", self.me):
            self._join_later(State.JOINING, now)
        elif self.is_parked and self.last.holder != self.me:
            self.becomes(State.PARKED, self._who_parked)
        elif not self.is_eligible:
            self._hold_in_doubt(now)
        elif any(hello.epoch > self.epoch for hello in self.partners):
            newer = max(self.partners, key=lambda hello: hello.epoch)
            self._hold(f"{newer.last.holder} has begun epoch {newer.epoch}")
            self.retry_at = now + self.options.retry_wait
        elif not self.others and self.last.holder == self.me and not self.begins_anew:
            self._begin(Grant(self.epoch, self.me, (Copy(self.me),)))
        elif self.last.holder == self.me and (self.is_parked or not self.others):
            self._serve_again(now)
        else:
            self._in_doubt(now)

    @property
    def _who_parked(self) -> str:
        return f"{self.last.holder} was stopped with --no-handover"

    def _serve_again(self, now: float) -> None:
        if self.options.electorate is not None:
            self._ask(Purpose.START, now)
        else:
            self._begin(self.alone_grant)

    def _in_doubt(self, now: float) -> None:
        """It had, or was, an in-sync partner."""
        if not self.is_eligible:
            self._hold_in_doubt(now)
        elif self.options.electorate is not None:
            self._ask(Purpose.START, now)
        elif self.handed_to == self.me or self.may_split:
            self._goes_first(now)
        else:
            self._hold_in_doubt(now)

    def _hold_in_doubt(self, now: float) -> None:
        why = "" if self.is_eligible else "its host was restarted; "
        why = "it has left in good order; " if self.has_left else why
        self._is_held(f"{why}{self.waits_for}")
        self.retry_at = now + self.options.retry_wait
        self._compare(now)

    def _compare(self, now: float) -> None:
        """All on the list are here, and nobody else is asked, or helps: the newest one serves."""
        if self.candidate is not None and self.state is State.ASKING and not self.is_eligible:
            self.candidate.has_met_all |= self.has_met_all  # said in its next attempt
        can_ask = self.options.electorate is not None
        if self.state is not State.HELD or (can_ask and self.is_eligible):
            return
        if self.has_met_all:
            if can_ask:
                self._ask(Purpose.START, now)
            else:
                self._goes_first(now)
        elif not (self.may_split or self.is_called):
            self._withdraws()

    # --- becoming live ------------------------------------------------------------------------

    def _ask(self, purpose: Purpose, now: float) -> None:
        if self._is_held_back():
            return
        self.becomes(State.ASKING)
        self.retry_at = NEVER
        if self.options.activates:
            self.asks(purpose, self.alone_grant, now, has_met_all=self.has_met_all)
        else:
            self._hold("waits for shmbroker ha promote")

    def _promote(self, grant: Grant) -> None:
        if self._is_held_back():
            return
        self.granted, self.closing_until = grant, NEVER
        if self.options.has_command:
            self.becomes(State.PROMOTING)
            self.does(Promote())
        else:
            self._begin(grant)

    def promoted(self, yes: bool, now: float) -> list[Action]:
        """`on-promote` has ended."""
        if self.state is State.PROMOTING and self.granted is not None and yes:
            self._begin(self.granted)
            self._look(now)  # somebody else was made live meanwhile
        elif self.state is State.PROMOTING:
            self._hold("on-promote said no")
            self.purpose = Purpose.TAKE_OVER  # of the next question
            self.refused_until = self.retry_at = now + self.options.retry_wait
        return self.done()

    def _begin(self, grant: Grant, *, is_forced: bool = False) -> None:
        if self.state is State.BEGINNING:
            return
        self.drop_vote()
        if not is_forced and self._is_held_back():
            return
        self.granted = grant = self.as_holder(grant)
        self.began_at = 0
        self.retry_at = self.closing_until = NEVER
        self.is_forced = is_forced
        self.becomes(State.BEGINNING)
        self.is_closed |= self.has_drained and self.options.drains
        empties, is_closed = self.has_drained, self.is_closed
        self.does(Begin(grant.epoch, grant.copies, is_forced, empties, is_closed))

    def command(self, *, is_forced: bool, now: float) -> list[Action]:
        """`ha activate`, `ha activate --force`, `ha promote`."""
        if self.state not in LOOKING | FOLLOWING or not self.node:
            return self.done()
        if is_forced:
            epochs = [self.epoch, *(hello.epoch for hello in self.peers.values())]
            epochs += [self.held_by.epoch] if self.held_by is not None else []
            epochs += [self.epoch + 1] if self.rivals else []  # they begin that one
            self.log(Alert.FORCED, f"epoch {self.epoch}, then {max(epochs) + 1}")
            self.does(Unfollow())
            self._begin(Grant(max(epochs) + 1, self.me, (Copy(self.me),)), is_forced=True)
        elif self.is_eligible and self.state in LOOKING:
            if self.options.electorate is not None:
                self.becomes(State.ASKING)
                self.asks(Purpose.TAKE_OVER, self.alone_grant, now)
            elif not (self.rivals or self.unmet):
                self.is_called = True
                self._goes_first(now)
                self.is_called = bool(self.claim)
        return self.done()

    def asks_for_role(self, now: float) -> list[Action]:
        """`ha promote` of a replica that is in sync: its live hands over, or says why not."""
        if self.state is State.IN_SYNC:
            self.log(Alert.FAILBACK_ASKED, self.live)
            self.tell(self.live, AskBack())
        return self.done()

    # --- losing its live ----------------------------------------------------------------------

    def _lost_live(self, now: float) -> None:
        """Its link is gone, or the live has stopped."""
        live, self.live, self.closing_until = self.live, "", NEVER
        can_ask = self.state is not State.LEAVING and self.options.electorate is not None
        asks = can_ask and self.is_eligible and not self.handed_to and not self.is_parked
        if asks:
            self._take_over_later(now)  # voters answer while what has come is written
        self.does(Unfollow())
        self.say_hello()
        if asks or self.state is State.LEAVING:
            return
        if not self.is_eligible:
            self.log(Alert.NOT_IN_SYNC, f"it was not in sync with {live}")
            self._join_later(State.JOINING, now)
        elif self.handed_to == self.me:
            self._promote(self.alone_grant)
        elif self.handed_to:
            self._join_later(State.JOINING, now)
        elif self.is_parked:
            self.becomes(State.PARKED, self._who_parked)
        elif self.options.on_partition == CONTINUE_ALONE and self.options.activates:
            self._take_over_later(now)
        else:
            self._hold(f"waits for {live} (epoch {self.epoch})")
            self._goes_by_proof(now)

    def _take_over_later(self, now: float) -> None:
        """The members on the list go one after the other; first they hear where each one ends."""
        if (self.others - {self.last.holder}) & self.links:
            self.becomes(State.ASKING)
            self.is_comparing = True
            self.retry_at = now + RANK_SECONDS
        elif self.options.electorate is not None:
            self._ask(Purpose.TAKE_OVER, now)
        else:
            self._promote(self.alone_grant)

    def death_proven(self, member: str, now: float) -> None:
        """The kernel of this host says that its process is no more."""
        if self.options.electorate is None and member not in self.proven:
            self.proven.add(member)
            self.say_hello()
            self._goes_by_proof(now)

    def _goes_by_proof(self, now: float) -> None:
        """Its live is dead: of those that were in sync with it one goes on."""
        was_following = self.state in FOLLOWING or self.state is State.HELD
        is_meant = self.is_eligible and not self.is_parked and self.handed_to in ("", self.me)
        if not was_following or not is_meant or self.last.holder not in self.dead:
            return
        self.does(Unfollow())
        self.live, self.closing_until = "", NEVER
        if self.has_met_all:
            self._goes_first(now)
        else:
            self._in_doubt(now)

    def leave(self) -> None:
        """In good order: first its own record, then the live is told."""
        self.drop_vote()
        if self.state in FOLLOWING:
            self.becomes(State.LEAVING)
            self.does(Unfollow())
            self.does(WriteLeft())
        else:
            self._ends(State.STOPPED)

    def _ends(self, state: State, why: str = "") -> None:
        """At once."""
        if self.state is State.BEGINNING:
            self.does(StopServing())  # programs may see it before its first record is synced
        self.becomes(state, why)
        self.does(End(state is State.FAILED, why))

    def left(self) -> list[Action]:
        """Its record is synced."""
        if self.state is State.LEAVING:
            self.has_left = True
            self.tell(self.live, Leave())
            self.becomes(State.STOPPED)
            self.does(End(False))
        return self.done()

    # --- what votes and members say -----------------------------------------------------------

    def passive_won(self, grant: Grant, now: float) -> None:
        if self.purpose is Purpose.HAND_BACK:
            self.tell(grant.holder, TakeOver(grant))
        elif self.state is State.ASKING and (self._is_meant(grant) or self.has_met_all):
            self._promote(grant)
        elif self.state is State.ASKING:
            self._hold_in_doubt(now)

    def passive_lost(self, now: float) -> None:
        """Back to joining; whoever has all that was confirmed asks again after a while."""
        if self.purpose is Purpose.HAND_BACK:
            return
        if self.purpose is Purpose.START:
            self._hold(self.waits_for)
            self.retry_at = now + self.options.retry_wait
        else:
            self._join_later(State.JOINING, now)

    def passive_taken(self, grant: Grant, now: float) -> None:
        if self.state is not State.ASKING or self._takes_over(grant):
            return  # or: who asked in its name could not tell it
        self.held_by = grant
        why = f"{grant.holder} has epoch {grant.epoch}"
        if self.purpose is Purpose.START:
            self._hold(why)
            self.retry_at = now + self.options.retry_wait
        else:
            self._join_later(State.JOINING, now, why)

    def passive_heard(self, member: str, what: Said, now: float) -> None:
        if isinstance(what, Hello):
            self._met(member, what, now)
        elif isinstance(what, Joined):
            self._joined(member, what, now)
        elif isinstance(what, NotJoined):
            self._not_joined(member, what, now)
        elif isinstance(what, YouHold):
            self._holds(member, what.grant, now)
        elif isinstance(what, GoAhead):
            self._let_ahead(member, what.claim, now)
        elif isinstance(what, TakeOver) and self.state in LOOKING | FOLLOWING:
            self._takes_over(what.grant)
        elif member != self.live or self.state not in FOLLOWING:
            pass  # of a time that is over
        elif isinstance(what, InSync):
            self._in_sync(member, now)
        elif isinstance(what, Closing):
            self.closing_until = now + self.options.handover_timeout
        elif isinstance(what, Offer):
            if self.state is State.IN_SYNC:
                self.tell(member, Accept())
        elif isinstance(what, Resumed):
            self.closing_until = NEVER
        elif isinstance(what, Dropped):
            if what.serves:
                self.does(Unfollow())
                self.say_hello()
                self._join_later(State.JOINING, now, what.reason)
            else:
                self._lost_live(now)
        elif isinstance(what, NoFailback):
            self.log(Alert.FAILBACK_REFUSED, what.reason)

    def _takes_over(self, grant: Grant) -> bool:
        """It was granted to this member, by the vote of who says so.

        If its host was restarted since, an older list may still call it eligible.
        """
        has_all = (self.is_eligible and self._is_meant(grant)) or self.has_met_all
        if grant.holder != self.me or grant.epoch <= self.epoch or not has_all:
            return False
        self.drop_vote()
        self.live = ""
        self.does(Unfollow())
        self._promote(grant)
        return True

    def _holds(self, member: str, grant: Grant, now: float) -> None:
        """An epoch was granted to this member, and nobody has begun it."""
        is_mine = grant.holder == self.me and grant.epoch > self.epoch
        is_free = self.candidate is None and self.state in LOOKING
        if not is_mine or not is_free or self.options.electorate is None:
            return
        hello = self.peers.get(member)
        theirs = hello.epoch if hello is not None and hello.is_listed else 0
        can_begin = theirs == grant.epoch - 1
        may_begin = self.is_eligible and self._is_meant(grant)
        if may_begin and not (can_begin and self.epoch < theirs):
            self._ask(Purpose.TAKE_OVER, now)
        elif self.has_met_all:  # who says so has nothing more, and may be in doubt as well
            self._ask(Purpose.START, now)
        elif can_begin:
            back = Grant(grant.epoch + 1, member, (Copy(member),))
            self.asks(Purpose.HAND_BACK, back, now)

    def _met(self, member: str, hello: Hello, now: float) -> None:
        has_leave = member in self.let_ahead
        self._claimed(member, hello)
        if self.state is State.STARTING and hello.serves and self.node in (b"", hello.node):
            self._partner_is_live(member, hello, now, has_leave=has_leave)
        elif self.state in FOLLOWING and member == self.live:
            if not hello.serves:
                self._lost_live(now)
        else:
            if member == self.live and not hello.serves:
                self.joins_later(now)
            if member == self.handed_to and self.state not in FOLLOWING:
                cannot = not hello.is_eligible or hello.last.age < self.last.age
                is_idle = not hello.serves and not hello.is_following
                if cannot and hello.epoch <= self.epoch and is_idle:
                    self.handed_to = ""  # it has left, its copy is gone, or it lacks that record
            is_back = self.state is State.PARKED and member == self.last.holder
            if is_back and self.is_parked_for_nothing:
                self.is_parked = False
                self._in_doubt(now)
            self._look(now)
            self._compare(now)
            self._meets(now)

    def _partner_is_live(
        self, member: str, hello: Hello, now: float, *, has_leave: bool
    ) -> None:
        """`has_leave`: both came back, it asked this one whether it may begin, and has begun."""
        options = self.options
        is_backup = has_leave or not (options.is_preferred and self.node)
        if hello.epoch < self.epoch or (hello.epoch == self.epoch and self.last.holder == self.me):
            return  # it serves an older epoch, and hears so
        self.look_until = NEVER
        if is_backup or options.check_for_live:
            self._join_later(State.JOINING, now)
        else:
            why = f"stale: {member} serves epoch {hello.epoch}"
            self.log(Alert.STALE, why)
            self.becomes(State.FAILED, why)
            self.does(End(True, why))

    # --- time ---------------------------------------------------------------------------------

    @property
    def passive_deadline(self) -> float:
        return min(self.look_until, self.retry_at, self.closing_until)

    def passive_tick(self, fresh_node: bytes, now: float) -> None:
        if now >= self.look_until:
            self._start(fresh_node, now)
        if now >= self.closing_until:
            self._lost_live(now)
        if now >= self.retry_at:
            self.retry_at = NEVER
            self._retry(now)

    def _retry(self, now: float) -> None:
        if self.candidate is not None:
            return
        if self.claim:
            self.say_hello()
        if self.is_comparing:
            self.is_comparing = False
            before = [each for each in self.others - {self.last.holder} if self.is_behind(each)]
            if before and self.state is State.ASKING:
                self.retry_at = now + RANK_SECONDS * len(before)
                return
        if self.state not in FOLLOWING:
            self.live = ""
            if self.held_by is not None and self.held_by.epoch > self.epoch:
                self.tell(self.held_by.holder, YouHold(self.held_by))
        self._look(now)
        may_ask = self.state in LOOKING - {State.WAITING, State.PARKED}
        is_held = self.held_by is not None and self.held_by.epoch > self.epoch
        is_lost = not self.live and not is_held and self.handed_to in ("", self.me)
        is_doubtful = self.is_listed and not self.is_eligible
        if may_ask and is_lost and is_doubtful and (not self.has_left or self.has_met_all):
            self._hold_in_doubt(now)
            if self.state is State.HELD and self.options.electorate is not None:
                self._ask(Purpose.START, now)  # the list at the voters may say that it counts
            return
        # who has parked the group serves again, and the others wait for it
        is_lost &= self.is_eligible and not (self.is_parked and self.last.holder != self.me)
        if may_ask and is_lost and self.options.electorate is None:
            self._in_doubt(now)
            self.retry_at = now + self.options.retry_wait
        elif may_ask and is_lost:
            self._ask(self.purpose if self.state is State.HELD else Purpose.TAKE_OVER, now)
        elif self.state in LOOKING and not self.live:
            self.retry_at = now + self.options.retry_wait
