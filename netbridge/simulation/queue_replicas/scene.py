"""Three brokers: b follows queues of a, c follows those of b; sometimes there is a ring, too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from shmbroker.netbridge.queue_replica.machine import State
from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import DELAY_SECONDS
from shmbroker.netbridge.simulation.queue_replicas.broker import Broker
from shmbroker.netbridge.simulation.queue_replicas.memory import Memory
from shmbroker.netbridge.simulation.queue_replicas.programs import Programs
from shmbroker.netbridge.simulation.queue_replicas.watch import NAMES, ORIGINALS, Watch
from shmbroker.netbridge.simulation.replication.process import Line
from shmbroker.netbridge.simulation.stage import Stage
from shmbroker.netbridge.simulation.world import World, Wrong

HOSTS: Final = ("a", "b", "c")
ROUND: Final = "round"
"""A queue that each broker has, and that each may follow of another one."""
DIAL_SECONDS: Final = 0.1
DOWN_SECONDS: Final = 0.05, 1.5
ORDER_SECONDS: Final = 0.3
PATIENCE_SECONDS: Final = 2.0
STAYS_DETACHED_SECONDS: Final = 1.0
NARROW: Final = 6
STORES_MAX: Final = 12

Orders = dict[tuple[str, str], str]
"""By broker and queue, whom it is to follow."""


@dataclass(frozen=True)
class Cast:
    durable: frozenset[str]
    room: int
    slots: dict[str, int]
    orders: Orders

    @property
    def has_round(self) -> bool:
        return any(queue == ROUND for _, queue in self.orders)


def cast_of(seed: int) -> Cast:
    random = Random(seed << 1)
    orders: Orders = {("b", name): ORIGINALS for name in NAMES}
    for name in random.sample(NAMES, random.randint(0, len(NAMES))):
        orders["c", name] = "b"
    if random.random() < 0.4:
        for each in HOSTS:
            of = random.choice([None, *(other for other in HOSTS if other != each)])
            if of is not None:
                orders[each, ROUND] = of
    return Cast(
        durable=frozenset(random.sample(NAMES, random.choice((0, 0, 1, 2)))),
        room=random.choice((1, 2, 3, 8)),
        slots={random.choice(NAMES): NARROW} if random.random() < 0.1 else {},
        orders=orders,
    )


class Scene(Stage):
    names = HOSTS

    def __init__(self, world: World, cast: Cast) -> None:
        super().__init__(world)
        self.cast = cast
        self.disks = {name: Disk(world) for name in HOSTS}
        self.memories: dict[str, Memory] = {}
        for name in HOSTS:
            self.memories[name] = Memory(world, self.disks[name], partial(self._changed, name))
        self.watch = Watch(self.memories, self._kills)
        self.programs = Programs(
            self.hosts[ORIGINALS], self.memories[ORIGINALS], self.watch, cast.durable
        )
        self.brokers: dict[str, Broker] = {}
        self._off: dict[str, float] = {}
        self._detached: dict[tuple[str, str], float] = {}

    @property
    def published(self) -> int:
        return self.programs.published

    def _changed(self, name: str) -> None:
        if (broker := self.brokers.get(name)) is not None and self.hosts[name].is_up:
            broker.looks()
        if name == ORIGINALS:
            self.watch.changes()
        else:
            self.watch.shows_others(name)

    def begin(self, busy_until: float) -> None:
        self.programs.ends_at = busy_until
        self.programs.begin()
        for memory in self.memories.values():
            memory.sync()
        for host in self.hosts.values():
            host.jumped = self.world.between(0, 1000)
            host.is_up = False
            self.world.later(self.world.between(0, 0.2), partial(self._starts, host))
        self._dial()
        self._orders()

    # --- processes ----------------------------------------------------------------------------

    def _starts(self, host: Host) -> None:
        if host.is_up:
            return
        host.starts()
        memory, cast = self.memories[host.name], self.cast
        slots = cast.slots if host.name == "b" else {}
        made = Broker(host, self.disks[host.name], memory, self.watch, cast.room, slots)
        made.is_on = self.world.now >= self._off.get(host.name, 0.0)
        self.brokers[host.name] = made
        made.begin()

    def ends(self, host: Host, loses_power: bool) -> None:
        if not host.is_up:
            return
        if not loses_power:
            self.network.killed(host)
        host.ends()
        if loses_power:
            former = list(self.memories[host.name].queues.values())
            self.memories[host.name].loses_power()
            self.watch.loses_power(host.name, former)
        self.world.later(self.world.between(*DOWN_SECONDS), partial(self._starts, host))

    def _kills(self, broker: Broker) -> None:
        self.ends(broker.host, loses_power=False)

    def runs(self, name: str) -> Broker | None:
        return self.brokers[name] if self.hosts[name].is_up else None

    def _dial(self) -> None:
        """Whoever follows makes the link; in a ring one of both does."""
        pairs = sorted({tuple(sorted((name, of))) for (name, _), of in self.cast.orders.items()})
        for far, near in pairs:
            dials = self.runs(near)
            if dials is not None and self.runs(far) is not None and far not in dials.lines:
                delay = self.world.between(*DELAY_SECONDS)
                self.hosts[near].later(delay, partial(self._join, near, far))
        self.world.later(DIAL_SECONDS, self._dial)

    def _join(self, near_name: str, far_name: str) -> None:
        near, far = self.runs(near_name), self.runs(far_name)
        is_free = self.network.is_free(self.hosts[near_name], self.hosts[far_name])
        if near is None or far is None or far_name in near.lines or not is_free:
            return
        lines = Line(near, far_name), Line(far, near_name)
        connection = self.network.connect(*lines)
        for side, line in enumerate(lines):
            line.joined(connection, side)
        far.soon(partial(self._accepts, far, lines[1]))
        near.connect(lines[0])

    def _accepts(self, far: Broker, line: Line) -> None:
        assert line.connection is not None
        if not line.connection.is_told[1]:
            line.heard_at = line.host.clock
            far.connect(line)

    # --- orders -------------------------------------------------------------------------------

    @property
    def wanted(self) -> Orders:
        """Those that are not detached now."""
        now = self.world.now
        return {each: of for each, of in self.cast.orders.items()
                if now >= self._detached.get(each, 0.0)}  # fmt: skip

    def _orders(self) -> None:
        """Somebody has queues follow that do not."""
        self.world.later(ORDER_SECONDS, self._orders)
        for memory in self.memories.values():
            if self.cast.has_round and ROUND not in memory.queues:
                memory.declare(ROUND)
                memory.changed()
        for (name, queue), of in self.wanted.items():
            host = self.hosts[name]
            if host.is_up:
                host.at(self.world.now, partial(self._order, name, queue, of))

    def _order(self, name: str, queue: str, of: str) -> None:
        broker = self.brokers[name]
        is_wanted = (name, queue) in self.wanted  # else it was detached since this was said
        if is_wanted and broker.where(queue) is None:
            broker.follower(of).add(queue)
            broker.host.later(PATIENCE_SECONDS, partial(self._abandons, broker, queue))

    def _abandons(self, broker: Broker, queue: str) -> None:
        known = broker.where(queue)
        if known is not None:
            known.abandon(queue)

    def detaches(self, name: str, queue: str, seconds: float) -> None:
        """For a while, or for good."""
        until = self.world.now + seconds if seconds < STAYS_DETACHED_SECONDS else float("inf")
        broker = self.brokers[name]
        known = broker.where(queue)
        if known is not None and known.members[queue].has_begun:
            self._detached[name, queue] = until
            known.detach(queue)

    # --- faults -------------------------------------------------------------------------------

    def strike(self, fault: Fault) -> None:
        super().strike(fault)
        world, host, broker = self.world, self.hosts[fault.host], self.runs(fault.host)
        queue = NAMES[int(fault.seconds * 1000) % len(NAMES)]
        if fault.kind == "deleted":
            self.programs.deletes(queue, fault.seconds)
        elif fault.kind == "off":
            self._off[fault.host] = world.now + fault.seconds
            self.ends(host, loses_power=False)
            world.later(fault.seconds, partial(self.ends, host, loses_power=False))
        elif fault.kind == "lapse":
            self.memories[fault.host].lapsed_until = world.now + fault.seconds
        elif fault.kind == "restored":
            self.memories[fault.host].copies_the_store()
            world.later(fault.seconds, partial(self._restores, host))
        elif broker is not None and fault.kind == "kill-in-show":
            broker.dies_after(int(fault.seconds * 1000) % STORES_MAX)
        elif broker is not None and fault.kind == "detach":
            host.at(world.now, partial(self.detaches, fault.host, queue, fault.seconds))
        elif broker is not None and fault.kind == "deleted-here":
            host.at(world.now, partial(self._deletes, fault.host, queue))

    def _restores(self, host: Host) -> None:
        if host.is_up:
            self.ends(host, loses_power=True)
            self.memories[host.name].restores_the_copy()

    def _deletes(self, name: str, queue: str) -> None:
        found = self.memories[name].queues.get(queue)
        if found is not None and (found.follows is None or found.is_deletable):
            del self.memories[name].queues[queue]
            self.memories[name].changed()

    # --- what is true -------------------------------------------------------------------------

    def misses(self) -> str:
        """What is not as it is to be at rest; nothing if all is."""
        self.watch.check()
        if not all(host.is_up for host in self.hosts.values()):
            return "not all brokers are up"
        if any(each.under_way for each in self.memories.values()):
            return "a transaction is under way"
        if any(self.world.now < until < float("inf") for until in self._detached.values()):
            return "a queue is detached for a while"
        lacks = (self._lacks(*order, of) for order, of in self.wanted.items())
        return next((each for each in lacks if each), "") or self._fed_for_nobody()

    def _lacks(self, name: str, queue: str, of: str) -> str:
        known = self.brokers[name].where(queue)
        if queue == ROUND:
            return ""
        there = self.memories[of].queues.get(queue)
        if there is None:  # one that had been detached may be deleted for good
            return ""
        if known is None or not known.members[queue].has_begun:
            return f"{queue} of {name} does not follow"
        member = known.members[queue]
        state, here = member.machine.state, member.queue
        if here is None or (name, queue) in self.watch.excused:
            return ""
        if state is not State.FOLLOWING:
            return f"{queue} of {name} is {state.value}: {member.machine.why}"
        if here.follows is None or here.follows.identity != there.identity:
            return f"{queue} of {name} follows one that {of} has no more"
        if here.content != there.content:
            return f"{queue} of {name} has {here.content}, and {of} has {there.content}"
        return f"{queue} of {name} may be deleted" if here.is_deletable else ""

    def _fed_for_nobody(self) -> str:
        for name, broker in self.brokers.items():
            for other, feeder in broker.feeders.items():
                follower = self.brokers[other].followers.get(name)
                members = follower.members.values() if follower is not None else ()
                more = feeder.numbers(NAMES) - {each.machine.number for each in members}
                if more:
                    return f"{name} feeds {other} what nobody there takes: {more}"
        return ""

    def check_rings(self) -> None:
        """Nobody follows itself, as far as it knows."""
        for name, broker in self.brokers.items():
            known = broker.where(ROUND)
            if known is None or known.members[ROUND].machine.state is not State.FOLLOWING:
                continue
            chain = known.members[ROUND].machine.chain
            if any(each.node == broker.node for each in chain):
                raise Wrong(f"{name} follows itself: {[each.name for each in chain]}")
