"""Members and voters of one node, and what strikes them; then one serves, and all follow it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from shmbroker.netbridge.election.candidate import Electorate, Phase
from shmbroker.netbridge.election.question import Listed
from shmbroker.netbridge.election.threshold import of_witnesses
from shmbroker.netbridge.simulation.election.fault import LIVE, LOST_AND_MID_VOTE
from shmbroker.netbridge.simulation.election.member import ElectionMember, Journal, alone
from shmbroker.netbridge.simulation.election.watch import ElectionWatch
from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import DELAY_SECONDS
from shmbroker.netbridge.simulation.replication.dialled import Dialled
from shmbroker.netbridge.simulation.replication.process import Process
from shmbroker.netbridge.simulation.world import World

LOST: Final = "kill", "kill", "power", "stand-still"
MID_VOTE: Final = "isolated", "no-voters", "partition", "kill", "stand-still"
"""What strikes a member when it has asked for a promise, or to accept."""
MID_VOTE_SECONDS: Final = 0.0, 0.08
LOOK_SECONDS: Final = 0.001


class Scene(Dialled):
    clock_rates = 0.85, 1.15
    down_seconds = 0.02, 0.6

    def __init__(self, world: World, members: tuple[str, ...], voters: tuple[str, ...]) -> None:
        super().__init__(world, members, voters)
        self.electorate = Electorate(voters, of_witnesses(len(voters)))
        self.watch: ElectionWatch = ElectionWatch(self.electorate.needed)
        self.watch.leases = self._leases
        self.journals = {name: Journal(Listed(alone(1, members[0]), 0)) for name in members}
        self.members: dict[str, ElectionMember] = {}
        self.is_calm = False

    @property
    def published(self) -> int:
        """How many epochs were granted."""
        return self.watch.granted

    def begin(self) -> None:
        self._start_all()

    def calms(self) -> None:
        """From now on who is live stays so, and puts everybody on its list."""
        self.is_calm = True
        for each in self.members.values():
            each.is_calm = True

    # --- processes ----------------------------------------------------------------------------

    def member(self, name: str) -> ElectionMember:
        return self.members[name]

    def _starts(self, host: Host) -> None:
        host.starts()
        name = host.name
        process: Process
        if name in self.ledgers:
            process = self._voter_starts(host)
        else:
            process = self.members[name] = ElectionMember(
                host, self.disks[name], self.journals[name], self.electorate,
                self.names_of_members.index(name), self.watch,
            )  # fmt: skip
            self.members[name].is_calm = self.is_calm
        process.begin()

    def strike(self, fault: Fault) -> None:
        if fault.host == LIVE:
            serve = [name for name, each in self.members.items() if each.serves]
            host = serve[0] if serve else self.names_of_members[0]
            other = self.names_of_voters[0] if fault.other == host else fault.other
            fault = replace(fault, host=host, other=other)
        until = self.world.now + fault.seconds
        if fault.kind == "some-voters":
            self.world.tell(f"fault: {fault}")
            self._block(fault.host, self._some_voters(), until)
        elif fault.kind == LOST_AND_MID_VOTE:
            super().strike(replace(fault, kind=self.world.random.choice(LOST)))
            self._strike_mid_vote(until)
        else:
            super().strike(fault)

    def _strike_mid_vote(self, until: float) -> None:
        """Whoever asks voters next for more than whether they would, at some moment of a step; or
        not all of them hear what it asks to accept, and nobody can answer."""
        world, random = self.world, self.world.random
        asks = [
            each for each in self.members.values()
            if each.host.is_up and each.candidate and not each.candidate.may_be_dropped
        ]  # fmt: skip
        if not asks:
            if world.now < until:
                world.later(LOOK_SECONDS, lambda: self._strike_mid_vote(until))
            return
        struck, seconds = asks[-1], random.uniform(0.05, 0.8)
        if random.random() < 0.5:
            self._strike_accepting(struck, seconds)
        else:
            voter = random.choice(self.names_of_voters)
            fault = Fault(world.now, random.choice(MID_VOTE), struck.name, seconds, voter)
            world.later(world.between(*MID_VOTE_SECONDS), lambda: self.strike(fault))

    def _strike_accepting(self, struck: ElectionMember, seconds: float) -> None:
        if struck.candidate is None or struck.candidate.may_be_dropped:
            return
        world = self.world
        if struck.candidate.phase is not Phase.ACCEPT:
            world.later(LOOK_SECONDS, lambda: self._strike_accepting(struck, seconds))
            return
        voters, until = self.names_of_voters, world.now + seconds
        missed = self._some_voters()
        world.tell(f"fault: {struck.name} asks to accept, and does not reach {missed}")
        self._block(struck.name, missed, until)  # the others get it, and may not say so
        world.later(DELAY_SECONDS[1], lambda: self._block(struck.name, voters, until))

    def _some_voters(self) -> tuple[str, ...]:
        """Perhaps all."""
        voters, random = self.names_of_voters, self.world.random
        return tuple(random.sample(voters, random.randint(1, len(voters))))

    # --- what is true -------------------------------------------------------------------------

    def _leases(self) -> list[tuple[str, int]]:
        """Who hands over has given its own away."""
        return [
            (name, each.epoch)
            for name, each in self.members.items()
            if each.host.is_up and each.serves and not each.hands_to
            and each.lease.is_valid(each.host.clock)
        ]

    @property
    def is_whole(self) -> bool:
        """One serves, its lease is valid, and all are on the list that its voters have."""
        lives = [each for each in self.members.values() if each.host.is_up and each.serves]
        if len(lives) != 1:
            return False
        [live] = lives
        told = live.told
        return (
            told is not None
            and told.grant.members == set(self.names_of_members)
            and live.lease.is_valid(live.host.clock)
            and live.lease.is_told(live.epoch, told.version)
            and all(each.listed == told for each in self.journals.values())
        )

    @property
    def is_for_a_person(self) -> bool:
        """An epoch that was given back is accepted by too few voters for a majority and too many
        for one without them, nobody knows any more to whom the one before was granted, and nobody
        asks for it again: they wait for `ha activate --force`."""
        kept = [ledger for of in self.ledgers.values() for ledger in of.values()]
        tried = max((each.accepted[1].epoch for each in kept if each.accepted), default=0)
        is_unused = tried - 1 in self.watch.decided and tried - 1 not in self.watch.begun
        return is_unused and tried not in self.watch.decided

    def misses(self) -> str:
        return "; ".join(
            f"{name}: {'serves' if each.serves else 'is passive'} (epoch {each.epoch}, list "
            f"{sorted(each.journal.listed.grant.members)}, vote {each.candidate is not None}, "
            f"held by {each.held_by})"
            for name, each in self.members.items()
        )
