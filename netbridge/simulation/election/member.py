"""A member that is nothing but its votes, its lease and its list.

    passive --its live is lost, or for no reason--> asks --granted--> serves
    serves  --a list with one more or one less, the next epoch, handing over-->  serves, or passive

Its list is in its journal at once, and told to the voters when everybody on it has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from shmbroker.netbridge.election.candidate import (
    Action,
    Ask,
    Candidate,
    Electorate,
    Lost,
    Patience,
    Taken,
    Won,
)
from shmbroker.netbridge.election.lease import Lease
from shmbroker.netbridge.election.question import (
    Answer,
    Copy,
    Grant,
    Listed,
    Release,
    Renew,
    Renewed,
    Stale,
)
from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.election.watch import ElectionWatch
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import Message
from shmbroker.netbridge.simulation.replication.process import Process
from shmbroker.netbridge.simulation.replication.voter import NODE

LEASE_SECONDS: Final = 0.4
ACT_SECONDS: Final = 0.02, 0.2
PATIENCE: Final = Patience(retries=4, retry_wait=0.1, vote_wait=0.3)
QUICK: Final = Patience(retries=0, vote_wait=0.3)


@dataclass(frozen=True, slots=True)
class Serves:
    """The live, to each member."""

    listed: Listed


@dataclass(frozen=True, slots=True)
class Has:
    """The answer: so far it has the journal."""

    age: tuple[int, int]


@dataclass(frozen=True, slots=True)
class TakeOver:
    grant: Grant


@dataclass(frozen=True, slots=True)
class YouHold:
    grant: Grant
    listed: Listed
    """What whoever says so has."""


@dataclass(frozen=True, slots=True)
class Leave:
    """It leaves in good order, and asks for nothing until it is on a list again."""


@dataclass(slots=True)
class Journal:
    """That outlives a process."""

    listed: Listed
    has_left: bool = False


def alone(epoch: int, member: str) -> Grant:
    return Grant(epoch, member, (Copy(member),))


class ElectionMember(Process):
    def __init__(
        self, host: Host, disk: Disk, journal: Journal, electorate: Electorate, rank: int,
        watch: ElectionWatch,
    ) -> None:  # fmt: skip
        super().__init__(host, disk)
        self.journal, self.electorate, self.watch = journal, electorate, watch
        self.patience = replace(PATIENCE, rank=rank)
        self.boot = f"{host.name} {host.life}"
        self.told: Listed | None = None
        """The list of this live, as the voters may know it."""
        self.has: dict[str, tuple[int, int]] = {}
        """By member: as far as it has the journal of this live."""
        self.lease = Lease(LEASE_SECONDS, electorate.needed)
        self.candidate: Candidate | None = None
        self.hands_to = ""
        self.goes_on = False
        """It asks for the next epoch, alone."""
        self.held_by: Grant | None = None
        """What was granted to another member, which does not serve yet."""
        self.given_back = 0
        self.round = self.attempt = 0
        self.is_calm = False

    def begin(self) -> None:
        super().begin()
        own = self.journal.listed.grant
        if own.holder == self.name and own.members == {self.name}:
            self._serves(own)
        self._act()

    # --- lines --------------------------------------------------------------------------------

    def connected(self, other: str) -> None:
        if other in self.electorate.voters:
            if self.candidate is not None:
                self._vote(self.candidate.connected(other))
            self._renews([other])
        elif self.serves:
            self.say(other, Serves(self.journal.listed))

    def disconnected(self, other: str, *, is_closed: bool) -> None:
        if other in self.electorate.voters:
            self.lease.ended(other)
        elif not self.serves and other == self.journal.listed.grant.holder:
            self.host.later(self.host.world.between(0.0, 0.02), self._asks_for_itself)

    def heard(self, other: str, message: Message) -> None:
        listed = self.journal.listed
        match message:
            case Answer():
                if self.candidate is not None:
                    self._vote(self.candidate.answered(other, message, self.host.clock))
            case Renewed() | Stale() if not self.serves or message.epoch != listed.grant.epoch:
                pass  # of a time that is over
            case Renewed():
                self.lease.renewed(other, message.serial, message.epoch, message.version)
                self._list_is_told()
            case Stale():
                self._not_renewed(message)
            case Serves():
                self._follows(other, message.listed)
            case Has():
                self.has[other] = max(message.age, self.has.get(other, (0, 0)))
                self._list_is_there()
            case Leave():
                self._lists_without(other)
            case TakeOver():
                if not self.serves and self._is_listed and message.grant.holder == self.name:
                    self._begins(message.grant)
            case YouHold():
                self._holds(other, message)
        self._wakes()

    def tick(self) -> None:
        clock = self.host.clock
        if self.candidate is not None and clock >= self.candidate.deadline:
            self._vote(self.candidate.tick(clock))
        if self.serves and clock >= self.lease.due_at:
            self._renews(self.electorate.voters)
        self._wakes()

    def _wakes(self) -> None:
        vote = self.candidate.deadline if self.candidate is not None else float("inf")
        self.wake(min(vote, self.lease.due_at) if self.serves else vote)

    # --- what it does by itself ---------------------------------------------------------------

    def _act(self) -> None:
        world = self.host.world
        if self.candidate is None:
            if self.serves:
                self._act_as_live(world.random.random())
            elif self.held_by is not None and self.held_by.epoch > self.epoch:
                self.say(self.held_by.holder, YouHold(self.held_by, self.journal.listed))
            elif self.live not in self.lines:
                self._asks_for_itself()
            elif not self.is_calm:
                self._act_as_backup(world.random.random())
        self._wakes()
        self.host.later(world.between(*ACT_SECONDS), self._act)

    def _act_as_live(self, chance: float) -> None:
        listed = self.journal.listed
        if self.told != listed or self.watch.waits[self.epoch] != listed.grant.members:
            return  # one list after the other
        random = self.host.world.random
        more = [each for each in self._linked if each not in listed.grant.members]
        others = sorted(listed.grant.members - {self.name})
        if more and (self.is_calm or chance < 0.5):
            self._lists((*listed.grant.copies, Copy(random.choice(more))))
        elif self.is_calm:
            return
        elif others and chance < 0.55:
            self.hands_to = random.choice(others)
            self._asks(alone(self.epoch + 1, self.hands_to), QUICK)
        elif others and chance < 0.6:
            self.goes_on = True
            self._asks(alone(self.epoch + 1, self.name), self.patience)

    def _act_as_backup(self, chance: float) -> None:
        if chance < 0.1:
            self._asks_for_itself()  # as if its link had been lost for a moment
        elif chance < 0.11 and self._is_listed:
            self.journal.has_left = True
            self.say(self.live, Leave())

    @property
    def _is_listed(self) -> bool:
        return self.name in self.journal.listed.grant.members and not self.journal.has_left

    def _asks_for_itself(self) -> None:
        if self.candidate is None and not self.serves and self._is_listed:
            self._asks(alone(self.epoch + 1, self.name), self.patience)
            self._wakes()

    @property
    def serves(self) -> bool:
        return self.told is not None

    @property
    def _linked(self) -> list[str]:
        """Of the other members."""
        return sorted(self.lines.keys() - set(self.electorate.voters))

    @property
    def epoch(self) -> int:
        return self.journal.listed.grant.epoch

    @property
    def live(self) -> str:
        """As far as it knows."""
        return self.journal.listed.grant.holder

    # --- votes --------------------------------------------------------------------------------

    def _tells(self, text: str) -> None:
        self.host.world.tell(f"{self.name} {text}")

    def _asks(self, grant: Grant, patience: Patience) -> None:
        self._tells(f"asks for epoch {grant.epoch} for {grant.holder}")
        self.candidate = Candidate(
            NODE, self.name, grant, self.electorate, patience, boot=self.boot, life=self.boot,
            round=self.round, attempt=self.attempt,
        )  # fmt: skip
        self._vote(self.candidate.begin(self.host.clock))

    def _drops_vote(self) -> None:
        if self.candidate is not None:
            self.round = max(self.round, self.candidate.round)
            self.attempt = max(self.attempt, self.candidate.attempt)
            self.candidate = None
        self.goes_on = False

    def _vote(self, actions: Iterable[Action]) -> None:
        for action in list(actions):
            if isinstance(action, Ask):
                self.watch.adopted += action.question.is_adopted
                self.say(action.voter, action.question)
            elif isinstance(action, (Won, Taken)):
                self._tells(f"is told that {action.grant.holder} has epoch {action.grant.epoch}")
                self.watch.told(action.grant)
                self._is_decided(action.grant)
            elif isinstance(action, Lost):
                self._tells(f"is told by {action.answers}")
                stops = self.goes_on or self.hands_to
                self._drops_vote()
                if self.serves and stops:
                    self._stops()

    def _is_decided(self, grant: Grant) -> None:
        is_back = self.candidate is not None and self.candidate.wanted.holder != self.name
        self._drops_vote()
        if grant.holder == self.name:
            self._begins(grant)
            return
        if self.serves:
            self._stops()
        if is_back:
            self.say(grant.holder, TakeOver(grant))
        else:
            self.held_by = grant

    def _holds(self, other: str, said: YouHold) -> None:
        """An epoch was granted to this member, and nobody has begun it: now it does, or gives it
        back."""
        grant = said.grant
        if grant.holder != self.name or grant.epoch <= self.epoch or self.serves or self.candidate:
            return
        has_all = said.listed.grant.epoch == grant.epoch - 1
        is_one_of_them = other in said.listed.grant.members
        cannot = self.journal.has_left or self.host.world.random.random() < 0.3
        if has_all and is_one_of_them and cannot:
            self.given_back = grant.epoch
            self._asks(alone(grant.epoch + 1, other), QUICK)
        elif grant.epoch > self.given_back and self._is_listed:
            self._asks(alone(grant.epoch, self.name), self.patience)

    # --- serving ------------------------------------------------------------------------------

    def _begins(self, grant: Grant) -> None:
        if grant.epoch > max(self.epoch, self.given_back):
            self._serves(grant)

    def _serves(self, grant: Grant) -> None:
        """In this epoch; if that is not new, its list is newer than all that voters were told."""
        self._tells(f"serves epoch {grant.epoch}")
        version = self.journal.listed.version + 1 if grant.epoch == self.epoch else 0
        self._drops_vote()
        self.hands_to, self.held_by = "", None
        self.journal.listed = self.told = Listed(grant, version)
        self.has.clear()
        self.lease.clear()
        self.watch.serves_from(self.name, grant)
        self._says_it()
        self._renews(self.electorate.voters)

    def _stops(self) -> None:
        self._tells(f"serves epoch {self.epoch} no more")
        self._drops_vote()
        for voter in self.electorate.voters:
            self.say(voter, Release(NODE, self.epoch))
        self.hands_to, self.told = "", None
        self.lease.clear()

    def _says_it(self) -> None:
        for other in self._linked:
            self.say(other, Serves(self.journal.listed))

    def _lists_without(self, member: str) -> None:
        """One that it hands over to stays on the list: it gives back what it is granted."""
        copies = self.journal.listed.grant.copies
        is_free = self.serves and self.candidate is None
        if is_free and any(each.member == member for each in copies):
            self._lists(tuple(each for each in copies if each.member != member))

    def _lists(self, copies: tuple[Copy, ...]) -> None:
        listed = self.journal.listed
        changed = Listed(replace(listed.grant, copies=copies), listed.version + 1)
        self.watch.waits_for(self.epoch, self.watch.waits[self.epoch] | changed.grant.members)
        self.journal.listed = changed
        self._tells(f"lists {sorted(changed.grant.members)} as {changed.age}")
        self._says_it()
        self._list_is_there()

    def _list_is_there(self) -> None:
        """Everybody on it has it."""
        listed = self.journal.listed
        others = listed.grant.members - {self.name}
        if not self.serves or self.told == listed:
            return
        if all(self.has.get(each, (0, 0)) >= listed.age for each in others):
            self.told = listed
            self._tells(f"tells {listed.age}")
            self._renews(self.electorate.voters)

    def _list_is_told(self) -> None:
        """Who is on it no more is not waited for: no majority grants that one anything."""
        told = self.told
        if told is None or told != self.journal.listed:
            return
        if self.lease.is_told(self.epoch, told.version):
            self.watch.waits_for(self.epoch, told.grant.members)

    def _renews(self, voters: Iterable[str]) -> None:
        if self.told is None:
            return
        asked = sorted(set(voters) & self.lines.keys())
        serial = self.lease.renews(asked, self.host.clock)
        for voter in asked:
            lease_ms = ceil(LEASE_SECONDS * 1000)
            self.say(voter, Renew(NODE, self.told.grant, self.told.version, serial, lease_ms))

    def _not_renewed(self, stale: Stale) -> None:
        newest = stale.newest
        if stale.is_decided and newest.holder != self.name and newest.epoch >= self.epoch:
            self.watch.told(newest)
            self.held_by = newest
            self._stops()
        elif self.candidate is None and not self.lease.is_valid(self.host.clock):
            assert self.told is not None
            self._asks(replace(self.told.grant, epoch=self.epoch + 1), self.patience)

    def _follows(self, other: str, listed: Listed) -> None:
        former = self.journal.listed
        if listed.age < former.age or listed.grant.holder == self.name:
            return
        if self.serves:
            self._stops()
        if self.candidate is not None and self.candidate.may_be_dropped:
            self._drops_vote()
        if self.name in listed.grant.members - former.grant.members:
            self.journal.has_left = False
        self.journal.listed = listed
        self.say(other, Has(listed.age))
