"""Who asks voters for an epoch: would you, then prepare, then accept.  The only voter of a node
prepares and accepts at once, unless it may have promised a ballot for this epoch.

    WOULD    --enough would-->      PREPARE --enough promise--> ACCEPT --enough accept--> WON, TAKEN
    WOULD    --the only voter would--> AT_ONCE --it accepts--> WON, TAKEN
    any step --cannot be won-->     PAUSE, and then the next attempt, or LOST
    any step --somebody else has this epoch or a higher one--> TAKEN

A step ends as soon as its result is certain.  A voter that is in doubt answers later: an attempt
that is not won for that reason alone does not count.  A voter that denies because it sees the live
answers again when it does so no more; that answer is taken in the pause, too.

If an earlier ballot may have been decided, its grant is adopted and brought to its end, whoever it
is for.  So nothing is ever decided twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from shmbroker.netbridge.election.question import (
    Answer,
    Ballot,
    Grant,
    Listed,
    Node,
    Question,
    Step,
    Verdict,
)

NEVER: Final = float("inf")
AGAIN_SECONDS: Final = 0.02
"""Until a ballot is tried again that met a later one, times the rank of the candidate and more."""
PATIENCE_SECONDS: Final = 0.3
"""For the promises of the other voters, when some attempt may have been decided without us."""


class Phase(Enum):
    WOULD = "would"
    PREPARE = "prepare"
    ACCEPT = "accept"
    AT_ONCE = "at once"
    PAUSE = "pause"
    DONE = "done"


STEPS: Final = {
    Phase.WOULD: Step.WOULD, Phase.PREPARE: Step.PREPARE, Phase.ACCEPT: Step.ACCEPT,
    Phase.AT_ONCE: Step.AT_ONCE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ask:
    voter: str
    question: Question


@dataclass(frozen=True, slots=True)
class Won:
    """A majority has accepted what was asked for."""

    grant: Grant


@dataclass(frozen=True, slots=True)
class Taken:
    """Somebody else has this epoch, or a higher one."""

    grant: Grant


@dataclass(frozen=True, slots=True)
class Lost:
    """Nothing is decided.  Who said what."""

    answers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Postponed:
    """Not won for want of voters that are in doubt; it asks on."""


Action = Ask | Won | Taken | Lost | Postponed
Actions = Iterator[Action]


@dataclass(frozen=True, slots=True)
class Patience:
    """`vote-retries`, `vote-retry-wait`, `quorum-vote-wait`; seconds."""

    retries: int = 12
    retry_wait: float = 5.0
    vote_wait: float = 30.0
    rank: int = 0
    """Candidates of one node pause for different times, so that they do not meet for ever."""


@dataclass(frozen=True, slots=True)
class Electorate:
    voters: tuple[str, ...]
    needed: int


class Candidate:
    def __init__(
        self,
        node: Node,
        asker: str,
        grant: Grant,
        electorate: Electorate,
        patience: Patience,
        *,
        boot: str = "",
        life: str = "",
        has_met_all: bool = False,
        round: int = 0,
        attempt: int = 0,
    ) -> None:
        self.node = node
        self.asker = asker
        self.life = life
        """Of the process: a ballot is never used again for something else."""
        self.wanted = grant
        self.electorate = self.next_electorate = electorate
        self.patience = patience
        self.boot = boot
        self.has_met_all = has_met_all
        self.phase = Phase.PAUSE
        self.attempt = attempt
        self.round = round
        """Of the newest ballot that it knows, its own or another's."""
        self.ballot: Ballot | None = None
        """Of this attempt: what was promised is what is asked to be accepted, whatever newer ones
        are heard of in between."""
        self.proposed = grant
        self.is_adopted = False
        self.may_be_promised = False
        """A ballot for this epoch, to us or to another: what was accepted in it has to be heard."""
        self.failures = 0
        self.collisions = 0
        self.answers: dict[str, Answer] = {}
        self.accepted: dict[str, tuple[Ballot, Grant]] = {}
        """By voter: what it has accepted, for this epoch or a higher one.

        The same at a majority is decided.
        """
        self.told: Listed | None = None
        """The newest that a voter knows.  Others are told in the next attempt."""
        self.until = NEVER
        self.has_postponed = False

    @property
    def deadline(self) -> float:
        return self.until

    @property
    def may_be_dropped(self) -> bool:
        """Nothing was promised to it, so nobody is kept from anything."""
        return self.phase in (Phase.WOULD, Phase.PAUSE)

    # --- what happens -------------------------------------------------------------------------

    def begin(self, now: float) -> Actions:
        self.attempt += 1
        self.electorate = self.next_electorate
        self.proposed, self.is_adopted = self.wanted, False
        yield from self._step(Phase.WOULD, now)

    def answered(self, voter: str, answer: Answer, now: float) -> Actions:
        is_of_us = voter in self.electorate.voters and answer.node == self.node
        if self.phase is Phase.DONE or not is_of_us or answer.attempt != self.attempt:
            return
        known = answer.known
        if known is not None and known.grant.epoch >= self.wanted.epoch:
            yield from self._decided(known.grant)
            return
        if known is not None and (self.told is None or known.age > self.told.age):
            self.told = known
        if answer.accepted is not None:
            self.accepted[voter] = answer.accepted
            if list(self.accepted.values()).count(answer.accepted) >= self.electorate.needed:
                yield from self._decided(answer.accepted[1])
                return
        if answer.ballot is not None:
            self.round = max(self.round, answer.ballot.round)
            self.may_be_promised = True
        if self.phase is Phase.PAUSE:
            if answer.step is not Step.WOULD:
                return
            self.answers[voter] = answer
            if self._yes >= self.electorate.needed:
                yield from self._step(self._after_would, now)
        elif STEPS[self.phase] is answer.step and self._is_of_this_ballot(answer):
            self.answers[voter] = answer
            yield from self._count(now)

    def _is_of_this_ballot(self, answer: Answer) -> bool:
        """An attempt has a second ballot if voters change their mind in the pause after the first:
        a promise for that one, come late, says nothing of what the voter has accepted since."""
        is_bound = answer.step is not Step.WOULD and answer.verdict is Verdict.YES
        return not is_bound or answer.ballot == self.ballot

    def voters_are(self, electorate: Electorate, now: float) -> Actions:
        """Others are known by now.  An attempt that has gone so far ends as it has begun."""
        self.next_electorate = electorate
        if self.may_be_dropped:
            yield from self.begin(now)

    def connected(self, voter: str) -> Actions:
        """Ask it, if it has not answered: what was sent before may be lost."""
        if self.phase in STEPS and voter in self.electorate.voters and voter not in self.answers:
            yield Ask(voter, self._question())

    def tick(self, now: float) -> Actions:
        if now < self.until:
            return
        if self.phase is Phase.PAUSE:
            yield from self.begin(now)
        elif self._yes >= self.electorate.needed:
            yield from self._propose(now)  # it has waited for more promises
        else:
            yield from self._failed(now)

    # --- steps --------------------------------------------------------------------------------

    def _step(self, phase: Phase, now: float) -> Actions:
        self.phase = phase
        self.answers = {}
        self.until = now + self.patience.vote_wait
        if phase in (Phase.PREPARE, Phase.AT_ONCE):
            self.round += 1
            self.ballot = Ballot(self.round, f"{self.asker} {self.life}")
            self.may_be_promised = True
        for voter in self.electorate.voters:
            yield Ask(voter, self._question())
        if not self.electorate.voters:
            yield from self._failed(now)

    @property
    def _after_would(self) -> Phase:
        is_alone = len(self.electorate.voters) == self.electorate.needed == 1
        return Phase.AT_ONCE if is_alone and not self.may_be_promised else Phase.PREPARE

    def _question(self) -> Question:
        step = STEPS[self.phase]
        ballot = None if step is Step.WOULD else self.ballot
        return Question(
            self.node, step, self.attempt, self.asker, self.proposed, self.boot, ballot,
            self.has_met_all, self.is_adopted, self.told,
        )  # fmt: skip

    def _count(self, now: float) -> Actions:
        needed = self.electorate.needed
        if self._yes >= needed:
            if self.phase is Phase.WOULD:
                yield from self._step(self._after_would, now)
            elif self.phase is Phase.PREPARE:
                yield from self._promised(now)
            else:
                yield from self._decided(self.proposed)
        elif self._yes + self._missing < needed:
            yield from self._failed(now)

    def _promised(self, now: float) -> Actions:
        """Wait for the others, if one of them could say that an attempt was decided."""
        newest = self._newest_attempt()
        if newest is not None and newest.holder != self.wanted.holder:
            agreeing = sum(
                bool(each.accepted and each.accepted[1] == newest) for each in self.answers.values()
            )
            if agreeing < self.electorate.needed <= agreeing + self._missing:
                self.until = min(self.until, now + PATIENCE_SECONDS)
                return
        yield from self._propose(now)

    def _propose(self, now: float) -> Actions:
        newest = self._newest_attempt()
        if newest is not None and self._may_be_decided(newest):
            self.proposed, self.is_adopted = newest, True
        yield from self._step(Phase.ACCEPT, now)

    @property
    def _attempts(self) -> list[tuple[Ballot, Grant]]:
        """What those that promise have accepted."""
        promises = [each for each in self.answers.values() if each.verdict is Verdict.YES]
        return [each.accepted for each in promises if each.accepted is not None]

    def _newest_attempt(self) -> Grant | None:
        newest = max(self._attempts, key=lambda each: each[0], default=None)
        return newest[1] if newest is not None else None

    def _may_be_decided(self, grant: Grant) -> bool:
        """Voters that have promised and never accepted it are lost to it."""
        silent = len(self.electorate.voters) - self._yes
        accepted = sum(of == grant for _, of in self._attempts)
        return accepted + silent >= self.electorate.needed

    def _decided(self, grant: Grant) -> Actions:
        self.phase = Phase.DONE
        self.until = NEVER
        wanted = self.wanted
        is_ours = (grant.epoch, grant.holder) == (wanted.epoch, wanted.holder)
        yield Won(grant) if is_ours else Taken(grant)

    def _failed(self, now: float) -> Actions:
        later = sum(each.verdict is Verdict.LATER for each in self.answers.values())
        is_postponed = later > 0 and self._yes + later + self._missing >= self.electorate.needed
        is_of_ballot = self.phase is not Phase.WOULD  # else what was promised before says nothing
        has_collided = is_of_ballot and any(
            each.ballot for each in self.answers.values() if each.verdict is Verdict.NO
        )
        told = tuple((voter, self._told(voter)) for voter in self.electorate.voters)
        if self.phase is not Phase.WOULD:
            self.answers = {}
        self.phase = Phase.PAUSE
        self.until = now + self.patience.retry_wait
        if is_postponed:
            if not self.has_postponed:
                self.has_postponed = True
                yield Postponed()
        elif has_collided:
            self.collisions += 1
            growth = 1 << min(self.collisions, 6)
            self.until = now + AGAIN_SECONDS * growth * (1 + self.patience.rank)
        else:
            self.failures += 1
            if self.failures > self.patience.retries:
                self.phase = Phase.DONE
                self.until = NEVER
                yield Lost(told)

    # --- counting -----------------------------------------------------------------------------

    @property
    def _yes(self) -> int:
        return sum(each.verdict is Verdict.YES for each in self.answers.values())

    @property
    def _missing(self) -> int:
        return len(self.electorate.voters) - len(self.answers)

    def _told(self, voter: str) -> str:
        answer = self.answers.get(voter)
        if answer is None:
            return "no answer"
        return answer.verdict.value + (f": {answer.reason}" if answer.reason else "")
