"""What a member has in every state: its place in the journal, its peers, its vote, its lease."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from typing import Final

from shmbroker.netbridge.election.candidate import (
    Action as VoteAction,
)
from shmbroker.netbridge.election.candidate import (
    Ask,
    Candidate,
    Patience,
    Postponed,
    Taken,
    Won,
)
from shmbroker.netbridge.election.lease import Lease
from shmbroker.netbridge.election.question import (
    Answer,
    Copy,
    FromVoter,
    Grant,
    Release,
    Renew,
    Renewed,
)
from shmbroker.netbridge.member.action import Action, Alert, Line, LookAround, Tell, TellVoter
from shmbroker.netbridge.member.options import MemberOptions
from shmbroker.netbridge.member.said import Hello, Said
from shmbroker.netbridge.member.standing import FOLLOWING, SERVING, Past, State

NEVER: Final = float("inf")
HAND_OVER_PATIENCE: Final = Patience(retries=0, vote_wait=1.0)
LOOK_SECONDS: Final = 0.3
"""For a partner that serves, where nothing says that it must be waited for longer."""
RANK_SECONDS: Final = 0.05
"""A backup waits so long for each one that goes before it."""
NOT_SINCE: Final = "it has lost a link, and reached none of its peers since"
"""In doubt: it is not known yet whether it is isolated."""


class Purpose(Enum):
    """Of a vote."""

    TAKE_OVER = "take over"
    START = "serve again"
    GO_ON = "go on without a replica"
    KEEP = "keep being live"
    HAND_OVER = "hand over"
    HAND_BACK = "hand back what it cannot begin"


QUICK: Final = frozenset({Purpose.HAND_OVER, Purpose.HAND_BACK})


class Core(ABC):
    claim = 0
    """Of the next epoch, where nobody can be asked; its number, or 0."""
    let_by: frozenset[str] = frozenset()
    """Who has let it go ahead."""
    is_called = False
    """It claims because a person, or a cluster manager, wants it."""

    def __init__(
        self, options: MemberOptions, past: Past, *, boot: str, life: str, now: float
    ) -> None:
        self.options = options
        self.me = options.name
        self.boot, self.life = boot, life
        self.state = State.STARTING
        self.why = ""
        """Of the state, for people: whom it waits for, why it was refused."""
        self.node = b"" if past.is_new else past.node
        """One that was founded here, and never begun, is none."""
        self.past = past
        self.last = past.last
        self.copies = past.copies
        self.is_whole = past.is_whole
        self.has_left = past.has_left
        self.handed_to = past.handed_to
        self.is_parked = past.is_parked and (past.all_know or past.last.holder != self.me)
        """Whoever wrote that, and went before all on the list had it, has crashed."""
        self.is_forced = past.is_forced
        self.has_drained = past.has_drained
        self.is_closed = past.is_closed and options.drains
        self.epoch = past.last.epoch
        """That it serves in, or the newest that its journal begins."""
        self.links: set[str] = set()
        self.peers: dict[str, Hello] = {}
        """What those that are linked have said last."""
        self.live = ""
        """Whom it follows, or wants to."""
        self.voters: set[str] = set()
        """That are linked."""
        self.candidate: Candidate | None = None
        self.purpose = Purpose.TAKE_OVER
        self.round = 0
        """Of its newest ballot."""
        self.attempt = 0
        self.granted: Grant | None = None
        """The epoch that it may begin."""
        self.told_won: Grant | None = None
        """That the log has: who is held is granted the same at each retry."""
        needed = options.electorate.needed if options.electorate else 1
        self.lease = Lease(options.lease, needed)
        self.listed = past.copies
        """The in-sync list as the voters may know it: its record is safe."""
        self.version = 0
        """The number of its record: a live that serves again in its epoch has a newer list than all
        that its voters were told before."""
        self.began_at = 0
        """The number of the record that begins the epoch that is granted to it; 0: not written."""
        self.is_stopping = False
        self.was_in_sync = False
        """This process was; one that was restarted may not use a proof of death."""
        self.proven: set[str] = set()
        """Members of whose newest process the kernel of this host has told that it is no more."""
        self.lives: dict[str, str] = {}
        """By member: of its newest process that was heard."""
        self.isolation = "it has reached none of its peers yet" if options.is_checked else ""
        """Why it never activates, and confirms nothing: `network-check`."""
        self._actions: list[Action] = []

    # --- what it says -------------------------------------------------------------------------

    def does(self, action: Action) -> None:
        self._actions.append(action)

    def done(self) -> list[Action]:
        """What is to be done, in this order."""
        actions, self._actions = self._actions, []
        return actions

    def tell(self, member: str, what: Said) -> None:
        if member in self.links:
            self.does(Tell(member, what))

    def say_hello(self) -> None:
        for member in sorted(self.links):
            self.tell(member, self.hello)

    def log(self, alert: Alert, detail: str = "") -> None:
        self.does(Line(alert, detail))

    def becomes(self, state: State, why: str = "") -> None:
        former, was = self.state, (self.is_becoming_live, self.claim)
        self.state, self.why = state, why
        if state is not State.HELD:
            self._forgets_its_claim()
        is_news = was != (self.is_becoming_live, self.claim)
        if is_news or any((former in each) != (state in each) for each in (SERVING, FOLLOWING)):
            self.say_hello()

    def _forgets_its_claim(self) -> None:
        self.claim, self.is_called = 0, False
        self.let_by = frozenset()

    @property
    def is_becoming_live(self) -> bool:
        """Where voters decide, nobody else needs to know.  Who is stopped may have begun."""
        begins = self.state in (State.PROMOTING, State.BEGINNING)
        has_begun = self.state is State.STOPPED and self.granted is not None
        return self.options.electorate is None and (begins or has_begun)

    @property
    def hello(self) -> Hello:
        return Hello(
            self.node, self.last, self.state in SERVING, self.epoch, self.is_forced,
            self.is_eligible, self.is_listed, self.state in FOLLOWING or self.is_becoming_live,
            self.life, tuple(sorted(self.lives[each] for each in self.proven & self.lives.keys())),
            self.claim, self.is_parked,
        )  # fmt: skip

    @property
    def is_isolated(self) -> bool:
        """A person who forces a member knows better."""
        return bool(self.isolation) and not self.is_forced

    def looks_around(self) -> None:
        """A link is lost: `network-check` says by which end, before one of both goes on alone.

        It has looked last while all was well, or has not missed enough yet.
        """
        if self.options.is_checked and self.options.electorate is None and not self.isolation:
            self.isolation = NOT_SINCE
            self.does(LookAround())

    @property
    def look_seconds(self) -> float:
        """How long a partner that serves may take to be met, at a start."""
        return self.options.check_wait if self.options.check_for_live else LOOK_SECONDS

    @property
    def meet_seconds(self) -> float:
        """The same after an isolation, or where the journal is new: links are made at intervals,
        and the connection that was tried last may have been lost."""
        return max(self.look_seconds, self.options.retry_wait, self.options.connect_wait)

    # --- what its journal says ----------------------------------------------------------------

    @property
    def is_eligible(self) -> bool:
        """Its journal has all that was confirmed, unless it was dropped and does not know."""
        is_meant = any(copy.allows(self.me, self.boot) for copy in self.copies)
        return self.is_listed and not self.has_left and is_meant

    @property
    def is_listed(self) -> bool:
        """The same, or its last frames went with an earlier boot of its host, or it has left.

        Its live may never have heard that it left, and may have less.
        """
        listed = any(copy.member == self.me for copy in self.copies)
        return bool(self.node) and self.is_whole and listed

    @property
    def others(self) -> frozenset[str]:
        """On the list, beside this one."""
        return frozenset(copy.member for copy in self.copies) - {self.me}

    def as_holder(self, grant: Grant) -> Grant:
        """The first record of an epoch is synced, and with it all before: it outlives any boot."""
        copies = tuple(Copy(self.me) if each.member == self.me else each for each in grant.copies)
        return replace(grant, copies=copies)

    def copy_of(self, member: str, boot: str) -> Copy:
        return Copy(member, "" if self.options.ack_outlives_boot else boot)

    # --- votes --------------------------------------------------------------------------------

    def asks(
        self, purpose: Purpose, grant: Grant, now: float, *, has_met_all: bool = False
    ) -> None:
        assert self.options.electorate is not None
        patience = HAND_OVER_PATIENCE if purpose in QUICK else self.options.patience
        self.drop_vote()
        self.purpose = purpose
        self.candidate = Candidate(
            self.node, self.me, grant, self.options.electorate, patience,
            boot=self.boot, life=self.life, round=self.round, attempt=self.attempt,
            has_met_all=has_met_all,
        )  # fmt: skip
        self._vote(self.candidate.begin(now), now)

    def drop_vote(self) -> None:
        if self.candidate is not None:
            self.round = max(self.round, self.candidate.round)
            self.attempt = max(self.attempt, self.candidate.attempt)
            self.candidate = None

    def _vote(self, actions: Iterable[VoteAction], now: float) -> None:
        for action in list(actions):
            if isinstance(action, Ask):
                if action.voter in self.voters:
                    self.does(action)
            elif isinstance(action, Postponed):
                self.postponed(now)
            else:
                self.drop_vote()
                if isinstance(action, Won):
                    if self.told_won != action.grant:
                        self.log(Alert.VOTE_WON, f"epoch {action.grant.epoch}")
                    self.told_won = action.grant
                    self.won(action.grant, now)
                elif isinstance(action, Taken):
                    self.log(Alert.VOTE_LOST, granted(action.grant))
                    self.taken(action.grant, now)
                else:
                    told = "; ".join(f"{voter}: {said}" for voter, said in action.answers)
                    self.log(Alert.VOTE_LOST, told)
                    self.lost_vote(now)

    def tick_vote(self, now: float) -> None:
        if self.candidate is not None:
            self._vote(self.candidate.tick(now), now)

    # --- voters -------------------------------------------------------------------------------

    def voter_up(self, voter: str, now: float) -> list[Action]:
        self.voters.add(voter)
        if self.candidate is not None:
            self._vote(self.candidate.connected(voter), now)
        self.renew([voter], now)
        return self.done()

    def voter_down(self, voter: str) -> list[Action]:
        """However the connection ended: the voter may take it for a release."""
        self.voters.discard(voter)
        self.lease.ended(voter)
        return self.done()

    def voter_said(self, voter: str, what: FromVoter, now: float) -> list[Action]:
        if what.node != self.node:
            return self.done()
        if isinstance(what, Answer):
            if self.candidate is not None:
                self._vote(self.candidate.answered(voter, what, now), now)
        elif what.epoch != self.epoch:
            pass  # of a time that is over
        elif isinstance(what, Renewed):
            self.lease.renewed(voter, what.serial, what.epoch, what.version)
            self.voters_told(now)
        else:
            self.not_renewed(what.newest, what.is_decided, now)
        return self.done()

    def renew(self, voters: Iterable[str], now: float) -> None:
        """The lease, and with it the in-sync list."""
        if self.options.electorate is None or self.state not in SERVING:
            return
        asked = sorted(set(voters) & self.voters)
        serial = self.lease.renews(asked, now)
        grant = Grant(self.epoch, self.me, self.listed)
        lease_ms = math.ceil(self.lease.seconds * 1000)
        for voter in asked:
            renew = Renew(self.node, grant, self.version, serial, lease_ms)
            self.does(TellVoter(voter, renew))

    def release(self) -> None:
        """It is live no more, and knows it."""
        for voter in sorted(self.voters):
            self.does(TellVoter(voter, Release(self.node, self.epoch)))
        self.lease.clear()

    # --- what a vote or a renewal means, by state ---------------------------------------------

    @abstractmethod
    def won(self, grant: Grant, now: float) -> None: ...
    @abstractmethod
    def taken(self, grant: Grant, now: float) -> None: ...
    @abstractmethod
    def lost_vote(self, now: float) -> None: ...
    @abstractmethod
    def postponed(self, now: float) -> None: ...
    @abstractmethod
    def voters_told(self, now: float) -> None: ...
    @abstractmethod
    def not_renewed(self, newest: Grant, is_decided: bool, now: float) -> None: ...


def granted(grant: Grant) -> str:
    return f"epoch {grant.epoch} was granted to {grant.holder}"
