"""Where nobody can be asked, whoever goes first claims the next epoch.

What a member has said last may be old when another one looks at it: both of two would go first.  So
a member begins when every other one on the list that it can reach has let it go ahead, by an answer
to this claim.  Who has said so begins nothing until the claim is withdrawn.
"""

from __future__ import annotations

from abc import abstractmethod

from shmbroker.netbridge.election.question import Grant
from shmbroker.netbridge.member.action import Alert
from shmbroker.netbridge.member.comparing import Comparing
from shmbroker.netbridge.member.core import NEVER
from shmbroker.netbridge.member.options import CONTINUE_ALONE
from shmbroker.netbridge.member.said import GoAhead, Hello
from shmbroker.netbridge.member.standing import LOOKING, State

UNANSWERED_MAX = 6
"""The pause between joins doubles so often."""


class Claiming(Comparing):
    retry_at = NEVER
    """A claim, a vote, or a join that was refused or is not answered."""
    unanswered = 0
    """Joins, one after the other.  An answer is to the newest one, so a live that takes longer than
    the pause between them would never be followed if that did not grow."""
    refused_until = 0.0
    """`on-promote` has said no, and is asked again after that."""
    claims = 0
    """That it has made."""
    let_ahead: frozenset[str] = frozenset()
    """Whose claims it has let go ahead: it begins nothing."""

    def joins_later(self, now: float) -> None:
        """Whom it wanted to follow does not want that, or serves no more."""
        self.live, self.unanswered = "", 0
        self.retry_at = now + self.options.retry_wait

    @abstractmethod
    def _begin(self, grant: Grant, *, is_forced: bool = False) -> None: ...
    @abstractmethod
    def _promote(self, grant: Grant) -> None: ...

    def _hold(self, why: str) -> None:
        self._withdraws()
        self._is_held(why)

    def _is_held(self, why: str) -> None:
        if self.state is not State.HELD:
            self.log(Alert.HELD, why)
        self.becomes(State.HELD, why)

    def _is_held_back(self) -> bool:
        """Who is isolated does not become live, who has let another one go ahead, and who hears of
        a live that nobody was asked for."""
        why = self._why_held_back()
        if why:
            self._hold(why)
        return bool(why)

    def _why_held_back(self) -> str:
        if self.isolation:
            return self.isolation
        if self.let_ahead:
            return f"waits for {', '.join(sorted(self.let_ahead))} (epoch {self.epoch})"
        for member, hello in self.peers.items() if self.options.electorate is None else ():
            if hello.node == self.node and hello.serves and hello.epoch > self.epoch:
                return f"{member} serves epoch {hello.epoch}"
        return ""

    @property
    def rivals(self) -> str:
        """Who may be live, or is about to be, as it has said: where nobody can be asked, only
        --force begins an epoch beside them."""
        if self.options.electorate is not None:
            return ""
        said = {member for member, hello in self.peers.items()
                if (hello.node == self.node and (hello.serves or hello.is_following))
                or (member in self.missed and hello.serves)}  # of another node: its disk is new
        return ", ".join(sorted(said | self.let_ahead))

    @property
    def unmet(self) -> str:
        """Who may be live beside it, as nobody can be asked, and it does not hear of them: only
        --force begins an epoch.  Who saw how the group was parked knows that it has no live; who
        was restarted since does not."""
        options = self.options
        may = not options.activates or options.on_partition == CONTINUE_ALONE or self._is_next
        saw_the_end = self.state is State.PARKED and self.was_in_sync
        if options.electorate is not None or may or saw_the_end:
            return ""
        return ", ".join(sorted(self.missed - self.met))

    # --- who goes first -----------------------------------------------------------------------

    @property
    def _is_next(self) -> bool:
        """Its live has said so, and that record is with all that count."""
        return self.handed_to == self.me and self.is_eligible

    def _goes_first(self, now: float) -> None:
        """Nobody is asked.  Who was the live before does not take over from anybody."""
        was_live = self.last.holder == self.me
        is_early = not was_live and now < self.refused_until
        if (is_early and not self.is_called) or self._is_held_back():
            return
        if not (self.options.activates or self.is_called or self._is_next):
            self._hold("waits for shmbroker ha promote")
            return
        if not self._is_next and not self._is_let_ahead():
            self.retry_at = now + self.options.retry_wait
            return
        if was_live and not self.is_called:
            self._begin(self.alone_grant)
        else:
            self._promote(self.alone_grant)

    def _is_let_ahead(self) -> bool:
        """By all on the list that are here.  Otherwise they have its claim, and it waits."""
        asked = self.met
        if asked <= self.let_by:
            return True
        if not self.claim:
            self._is_held(f"waits for {', '.join(sorted(asked))} (epoch {self.epoch})")
            self.claims += 1
            self.claim = self.claims
            self.say_hello()
        return False

    def _withdraws(self) -> None:
        if self.claim:
            self._forgets_its_claim()
            self.say_hello()

    # --- what the others say ------------------------------------------------------------------

    def _claimed(self, member: str, hello: Hello) -> None:
        """This is news of a member: it may claim, or claim no more."""
        if not hello.claim:
            if not hello.is_following:  # nor becomes live
                self.let_ahead -= {member}
            return
        is_free = self.state in LOOKING | {State.STARTING}
        is_ours = hello.node == self.node and hello.epoch >= self.epoch
        if not is_free or not is_ours or self._is_next or self.options.electorate is not None:
            return
        goes_first = self.handed_to == member or self.goes_before(member, hello.last)
        # who claims has not heard where this one ends, but has all that was confirmed
        has_all = hello.is_eligible and member in self.others and not self.claim
        if goes_first or has_all or not self.is_listed:
            self._withdraws()
            self.let_ahead |= {member}
            self.tell(member, GoAhead(hello.claim))

    def _let_ahead(self, member: str, claim: int, now: float) -> None:
        if not self.claim or claim != self.claim:
            return  # of a claim that is over
        self.let_by |= {member}
        if self.is_called or self.has_met_all or self.may_split:
            self._goes_first(now)
        else:
            self._withdraws()
