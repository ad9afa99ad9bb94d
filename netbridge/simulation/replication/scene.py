"""Members, voters and clients on one stage: who is linked, who is struck, who starts again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random

from shmbroker.netbridge.election.candidate import Electorate, Patience
from shmbroker.netbridge.election.threshold import of_lives, of_witnesses
from shmbroker.netbridge.history.check import AFTER_A_SPLIT, RULES, check
from shmbroker.netbridge.history.event import History, Queue
from shmbroker.netbridge.member.options import CONTINUE_ALONE, STOP_CONFIRMING, MemberOptions
from shmbroker.netbridge.member.standing import State
from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import DELAY_SECONDS
from shmbroker.netbridge.simulation.replication.client import (
    QUEUES,
    Client,
    Consumer,
    Founder,
    Publisher,
)
from shmbroker.netbridge.simulation.replication.dialled import Dialled
from shmbroker.netbridge.simulation.replication.fault import MEMBERS, VOTERS
from shmbroker.netbridge.simulation.replication.in_cluster import ClusterMember
from shmbroker.netbridge.simulation.replication.log import Frame, Log
from shmbroker.netbridge.simulation.replication.member import (
    CHECKS,
    GATEWAY,
    MemberProcess,
    not_in,
)
from shmbroker.netbridge.simulation.replication.process import Process
from shmbroker.netbridge.simulation.replication.watch import Watch
from shmbroker.netbridge.simulation.world import World, Wrong

CONNECT_SECONDS = 0.3
DEATH_SECONDS = 0.0, 0.05
LEASE_SECONDS = 0.6
NODE_OF_NEWCOMERS = b"O" * 16


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays, by the seed."""

    members: int
    voters: int
    max_replicas: int
    splits: bool
    acks_when_synced: bool
    fails_back: bool
    has_command: bool
    lives: bool = False
    """Its voters are the other lives of a cluster, and not witnesses."""
    is_checked: bool = False
    """Members look whether they reach the gateway."""
    drains: bool = False
    """Backups give all to another node."""
    is_one_host: bool = False
    """All members run there, and its kernel tells each one of the death of another's process."""
    is_filled: bool = False
    """Disks that fail are full, and take no frames."""
    newcomers_found: bool = False
    """Whose host was replaced is preferred as it was before: to itself it is a first start."""

    @property
    def needed(self) -> int:
        return of_lives(self.voters + 1) if self.lives else of_witnesses(self.voters)


def cast_of(seed: int) -> Cast:
    random = Random(seed * 7919)
    members = random.choice((2, 2, 2, 3))
    return Cast(
        members,
        random.choice((1, 1, 1, 1, 3, 3, 3, 0, 0)),
        random.choice((1, 2)),
        random.random() < 0.4,
        random.random() < 0.5,
        random.random() < 0.5,
        random.random() < 0.3,
    )


class Scene(Dialled):
    clock_rates = 0.9, 1.1
    down_seconds = 0.05, 0.6
    beyond = (GATEWAY,)

    def __init__(self, world: World, cast: Cast) -> None:
        self.cast = cast
        super().__init__(world, MEMBERS[: cast.members], VOTERS[: cast.voters])
        self.may_split = not cast.voters and cast.splits and not cast.is_checked
        self.watch = Watch(cast.needed, may_split=self.may_split)
        for disk in self.disks.values():
            disk.takes_frames = not cast.is_filled
        self.logs = {name: Log(self.disks[name]) for name in self.names_of_members}
        self.watch.logs = self.logs
        self.newcomers: set[str] = set()
        """Whose hosts were replaced: they found no node, or one of their own."""
        self.boots = dict.fromkeys(self.names, 1)
        self.members: dict[str, MemberProcess] = {}
        self.watch.leases = self._leases
        self.history = History()
        self.aside: set[str] = set()
        self.elsewhere: dict[Queue, list[str]] = {}
        """What was given to another node, and nobody consumes there."""
        self.queues = {name: Queue(name, 1) for name in QUEUES}
        self.clients: list[Client] = [
            Publisher(self, "p1", "orders"),
            Publisher(self, "p2", "scratch"),
            Consumer(self, "c1", "orders"),
            Consumer(self, "c2", "scratch"),
        ]
        self.founder = Founder(self, "founder")
        self.busy_until = 0.0
        self.number = 0
        self.dialling: set[tuple[str, str]] = set()

    @property
    def published(self) -> int:
        return self.number

    @published.setter
    def published(self, number: int) -> None:
        self.number = number

    def begin(self, busy_until: float) -> None:
        self.busy_until = busy_until
        self._start_all()
        self.founder.acts()

    # --- processes ----------------------------------------------------------------------------

    def _options(self, name: str) -> MemberOptions:
        cast = self.cast
        known = () if cast.lives else self.names_of_voters
        rank = self.names_of_members.index(name)
        return MemberOptions(
            name,
            is_preferred=rank == 0 and (name not in self.newcomers or cast.newcomers_found),
            members=self.names_of_members,
            electorate=Electorate(known, cast.needed) if cast.voters else None,
            on_partition=CONTINUE_ALONE if cast.splits else STOP_CONFIRMING,
            lease=LEASE_SECONDS,
            patience=Patience(6, 0.3, 0.5, rank),
            check_for_live=True,
            check_wait=0.5,
            connect_wait=CONNECT_SECONDS,
            allow_failback=cast.fails_back,
            has_command=cast.has_command,
            retry_wait=0.2,
            sync_timeout=2.0,
            replica_timeout=0.4,
            ack_outlives_boot=cast.acks_when_synced,
            max_replicas=cast.max_replicas,
            handover_timeout=1.5,
            is_checked=cast.is_checked,
            drains=cast.drains and rank > 0,
        )

    def _starts(self, host: Host) -> None:
        name = host.name
        host.starts()
        process: Process
        if name in self.ledgers:
            process = self._voter_starts(host)
        else:
            made = (
                partial(ClusterMember, self.names_of_voters) if self.cast.lives else MemberProcess
            )
            process = made(
                host, self.logs[name], self._options(name), f"{name} {self.boots[name]}",
                self.watch, lambda is_failure: self._ended(host), self._set_aside, self._gives,
            )  # fmt: skip
            if name in self.newcomers:
                process.machine.fresh_node = NODE_OF_NEWCOMERS
            self.members[name] = process
        process.begin()
        if name in self.members and self.cast.is_checked:
            self._look_around(name)

    def _look_around(self, name: str) -> None:
        """Each process of a member does, as long as it runs: a miss takes as long as a pause."""
        host, member = self.hosts[name], self.members[name]
        is_there = self.network.blocked.get((name, GATEWAY), 0.0) <= self.world.now
        pause = CHECKS.heartbeat_interval
        seconds = self.world.between(*DELAY_SECONDS) if is_there else pause
        ended = partial(member.looked, host.clock, is_there=is_there)
        host.later(seconds, ended)
        host.later(pause, lambda: self._look_around(name))

    def member(self, name: str) -> MemberProcess:
        return self.members[name]

    def _ended(self, host: Host) -> None:
        self.ends(host, loses_power=False)

    def _has_ended(self, host: Host, *, loses_power: bool) -> None:
        if not loses_power:
            self._tells_of_the_death(host)
            return
        self.boots[host.name] += 1
        if host.name in self.logs:
            self.logs[host.name].loses_power()
            self.watch.loses_power(host.name)

    def _tells_of_the_death(self, host: Host) -> None:
        for member in self.members.values() if self.cast.is_one_host else ():
            if member.host.is_up and member.watched.get(host.name) == host.life - 1:
                seconds = self.world.between(*DEATH_SECONDS)
                member.host.later(seconds, partial(member.died, host.name, host.life - 1))

    def _set_aside(self, frames: list[Frame]) -> None:
        if self.may_split:
            self.aside |= {getattr(op, "message", "") for frame in frames for op in frame.ops} - {
                ""
            }

    def _gives(self, queue: Queue, message: str) -> None:
        """To the other node, which knows what has come there."""
        there = self.elsewhere.setdefault(queue, [])
        if message not in there:
            there.append(message)

    # --- faults -------------------------------------------------------------------------------

    def strike(self, fault: Fault) -> None:
        kind, until = fault.kind, self.world.now + fault.seconds
        if kind == "clock" and fault.host in self.ledgers:
            self.world.tell(f"fault: {fault}")
            self.hosts[fault.host].jumped += min(fault.seconds, 0.1 * LEASE_SECONDS)
        elif kind == "sync-then-still":
            # what was written is synced when it wakes, and somebody else serves by then
            self.world.tell(f"fault: {fault}")
            host = self.hosts[fault.host]
            self.disks[fault.host].slow_until = until
            host.stands_until = max(host.stands_until, self.world.now + 1.0 + fault.seconds)
        elif kind in ("kill-for", "power-for"):
            self.world.tell(f"fault: {fault}")
            loses_power = kind == "power-for"
            self.ends(self.hosts[fault.host], loses_power=loses_power, down=fault.seconds)
        elif kind == "disk-full":
            self.world.tell(f"fault: {fault}")
            self.disks[fault.host].fails_until = until
        elif kind == "power" and self.newcomers and fault.host in self.names_of_members:
            self.world.tell("no power failure: one copy is lost already")
        elif kind == "power" and self.cast.is_one_host:
            self.world.tell("no power failure: all copies would be lost")
        elif fault.host in self.names_of_members and self._orders(fault):
            self.world.tell(f"fault: {fault}")
        else:
            super().strike(fault)

    def _orders(self, fault: Fault) -> bool:
        """What people want of a member."""
        member, host = self.members[fault.host], self.hosts[fault.host]
        machine = member.machine
        if fault.kind == "stop":
            member.soon(lambda: member.does(machine.stop(host.clock)))
        elif fault.kind == "park":
            member.soon(lambda: member.does(machine.stop(host.clock, hands_over=False)))
        elif fault.kind == "hand-over":
            member.soon(lambda: member.does(machine.hands_over(fault.other, host.clock)))
        elif fault.kind == "replaced":
            self._replaced(fault.host)
        else:
            return False
        return True

    def _replaced(self, name: str) -> None:
        """Its host is gone with its disk, and another one takes its name; never the only copy."""
        lives = [each for each in self.members.values() if each.serves and each.name != name]
        begun = max(self.watch.begun, default=0)
        attempts = [
            grant
            for voters in self.watch.accepted.values()
            for grant in voters.values()
            if grant.epoch >= begun
        ]
        is_holder = any(grant.holder == name for grant in attempts)
        if len(lives) != 1 or is_holder or not self.cast.voters:
            return
        machines = [each.machine for each in self.members.values()]
        if any(each.candidate or each.state is State.HANDING_OVER for each in machines):
            return
        if self.members[name].machine.has_asked_back:  # it may be the newest before it hears of it
            return
        self.ends(self.hosts[name], loses_power=True)
        self.gets_a_new_disk(name)

    def gets_a_new_disk(self, name: str) -> None:
        """While it does not run."""
        self.newcomers.add(name)
        self.disks[name] = Disk(self.world)
        self.logs[name] = Log(self.disks[name])

    # --- what is true -------------------------------------------------------------------------

    @property
    def lives(self) -> list[MemberProcess]:
        return [each for each in self.members.values() if each.serves]

    def _leases(self) -> list[tuple[str, int]]:
        """Who hands over has given its own away."""
        return [
            (name, each.machine.epoch)
            for name, each in self.members.items()
            if each.serves
            and each.machine.state is not State.HANDING_OVER
            and each.machine.lease.is_valid(each.host.clock)
        ]

    @property
    def is_whole(self) -> bool:
        """One serves, as many as may follow, and nobody waits for an answer."""
        if any(each.rings is None for each in self.lives):  # it gives all away
            return False
        if any(client.is_busy or client.acking for client in (*self.clients, self.founder)):
            return False
        states = [each.machine.state for each in self.members.values() if each.host.is_up]
        in_sync = min(self.cast.max_replicas, self.cast.members - 1)
        waiting = self.cast.members - 1 - in_sync
        return (
            states.count(State.LIVE) == 1
            and states.count(State.IN_SYNC) == in_sync
            and sum(states.count(each) for each in (State.WAITING, State.JOINING)) == waiting
        )

    def misses(self) -> str:
        told = [
            f"{name}: {each.machine.state.value} {each.machine.why} (epoch {each.machine.epoch}, "
            f"last {each.machine.last.epoch}/{each.machine.last.number}, "
            f"list {[copy.member for copy in each.machine.copies]})"
            for name, each in self.members.items()
        ]
        return "; ".join(told) + f"; busy: {[each.name for each in self.clients if each.is_busy]}"

    def check(self) -> None:
        [live] = self.lives
        rings = live.rings
        assert rings is not None
        for each in self.members.values():  # one that has no place still has its tail
            self._set_aside(not_in(live.log.frames, each.log.frames))
        self.history.remains = {queue: list(names) for queue, names in rings.queues.items()}
        for queue, name in rings.outgoing:  # it was not sent, or is known there
            self._gives(queue, name)
        for queue, given in self.elsewhere.items():
            if self.queues[queue.name] == queue:  # else it may be deleted
                self.history.remains[queue] = [*given, *self.history.remains.get(queue, ())]
        self.history.set_aside = frozenset(self.aside)
        wrong = check(self.history, AFTER_A_SPLIT if self.may_split else RULES)
        if wrong:
            raise Wrong(wrong[0])
