"""Nodes, their brokers and the connections between them on one stage."""

from __future__ import annotations

from functools import partial
from typing import Final

from shmbroker.netbridge.cluster.scale_down import ScaleDown
from shmbroker.netbridge.simulation.cluster.broker import Broker
from shmbroker.netbridge.simulation.cluster.cast import DELAYS, QUEUES, Cast, Settings
from shmbroker.netbridge.simulation.cluster.leaving import Leaving
from shmbroker.netbridge.simulation.cluster.node import (
    TALK,
    WAY,
    Node,
    uri_of,
)
from shmbroker.netbridge.simulation.cluster.programs import Programs
from shmbroker.netbridge.simulation.cluster.watch import Watch
from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import DELAY_SECONDS, Connection
from shmbroker.netbridge.simulation.replication.process import Line
from shmbroker.netbridge.simulation.stage import Stage
from shmbroker.netbridge.simulation.world import World

DIAL_SECONDS: Final = 0.15
SILENCE_SECONDS: Final = 0.6
DOWN_SECONDS: Final = 0.05, 2.0
TAKEOVER_SECONDS: Final = 0.1, 0.5
BACK_SECONDS: Final = 0.7
TOLD_SECONDS: Final = 1.0
"""Then all have heard what one was told."""
STAYS_AWAY_SECONDS: Final = 1.5
"""A node that leaves for longer does not come back."""


class Scene(Stage):
    def __init__(self, world: World, cast: Cast) -> None:
        self.names = cast.hosts()
        super().__init__(world)
        self.cast = cast
        self.nodes = {name: Node(name, cast.hosts_of(name), Disk(world)) for name in cast.nodes}
        self.of_host = {host: node for node in self.nodes.values() for host in node.hosts}
        self.disks = {host: node.store.disk for host, node in self.of_host.items()}
        self.watch = Watch(self.nodes, cast.mode)
        self.programs = Programs(world, list(self.nodes.values()), self.watch)
        self.brokers: dict[str, Broker] = {}
        self._stays_down: set[str] = set()
        self._to_be_forgotten = 0
        """Nodes of which somebody says so later."""

    @property
    def published(self) -> int:
        return self.programs.published

    def begin(self, busy_seconds: float) -> None:
        for (name, queue), settings in self.cast.settings.items():
            self.nodes[name].store.declare(queue, settings)
            self.nodes[name].always.add(queue)
        for host in self.hosts.values():
            host.jumped = self.world.between(0, 1000)
            host.is_up = False
            is_late = self.of_host[host.name].name in self.cast.late
            latest = busy_seconds if is_late else 0.5
            self.world.later(self.world.between(0, latest), partial(self._starts, host))
        self.programs.begin(busy_seconds)
        self._dial()

    # --- processes ----------------------------------------------------------------------------

    def _starts(self, host: Host) -> None:
        if host.is_up or host.name in self._stays_down:
            return
        host.starts()
        node = self.of_host[host.name]
        self.world.tell(f"{host.name} starts")
        statics = self.nodes[self.cast.first_contacts[node.name]].hosts
        broker = Broker(host, node, statics, self.cast.attempts, self.watch)
        self.brokers[host.name] = broker
        if node.live is None:
            broker.serves()
        else:
            broker.waits()

    def ends(self, host: Host, loses_power: bool) -> None:
        self._ends(host, loses_power, self.world.between(*DOWN_SECONDS))

    def _ends(self, host: Host, loses_power: bool, down: float) -> None:
        if not host.is_up:
            return
        if not loses_power:
            self.network.killed(host)
        host.ends()
        node, broker = self.of_host[host.name], self.brokers[host.name]
        if node.live is broker:
            node.loses_programs()
            node.live = None
            if loses_power:
                node.store.loses_power()
                self.watch.loses(node)
            self._is_taken_over(node)
        self.world.later(down, partial(self._starts, host))

    def _is_taken_over(self, node: Node, former: Broker | None = None) -> None:
        """`former`: it runs, and serves again if there is nobody else."""

        def serves() -> None:
            waiting = [each for each in self._running(node) if not each.is_live]
            broker = next((each for each in waiting if each is not former), former)
            if node.live is None and broker is not None:
                broker.host.at(self.world.now, partial(self._takes_over, broker))

        if len(node.hosts) > 1:
            self.world.later(self.world.between(*TAKEOVER_SECONDS), serves)

    def _takes_over(self, broker: Broker) -> None:
        if broker.node.live is None:
            self.world.tell(f"{broker.name} takes over")
            broker.serves()

    def _running(self, node: Node) -> list[Broker]:
        return [self.brokers[host] for host in node.hosts if self.hosts[host].is_up]

    def _runs(self, name: str) -> Broker | None:
        return self.brokers[name] if self.hosts[name].is_up else None

    # --- connections --------------------------------------------------------------------------

    def _dial(self) -> None:
        for name in self.names:
            near = self._runs(name)
            if near is not None and near.host.stands_until <= self.world.now:
                for line in near.wanted:
                    self.world.later(
                        self.world.between(*DELAY_SECONDS), partial(self._joins, near, line)
                    )
        self.world.later(DIAL_SECONDS, self._dial)

    def _joins(self, near: Broker, line: str) -> None:
        other = line.partition(TALK if TALK in line else WAY)[2]
        far = self._runs(other)
        if self._runs(near.name) is not near or far is None or not far.listens:
            return
        is_free = self.network.is_free(near.host, far.host)
        if line not in near.wanted or not is_free or far.host.stands_until > self.world.now:
            return  # it serves no more, or another one was faster
        ends = Line(near, line), Line(far, line)
        connection = self.network.connect(*ends)
        for side, end in enumerate(ends):
            end.joined(connection, side)
        far.connect(ends[1])
        near.connect(ends[0])

    # --- faults -------------------------------------------------------------------------------

    def strike(self, fault: Fault) -> None:
        world, host = self.world, self.hosts[fault.host]
        open_before = list(self.network.connections)
        super().strike(fault)
        kind, until = fault.kind, world.now + fault.seconds
        others = [each for each in self.names if each != fault.host]
        if kind == "isolated":
            for other in others:
                for way in ((fault.host, other), (other, fault.host)):
                    self.network.blocked[way] = max(until, self.network.blocked.get(way, 0.0))
        elif kind == "cut-off":
            for each in open_before:
                if host in (each.ends[0].host, each.ends[1].host):
                    each.tell(0)
                    each.tell(1)
        elif kind == "stop":
            self._stops(host, fault.seconds)
        elif kind == "hand-over":
            hands_over = partial(self._hands_over, self.of_host[fault.host])
            hands_over()
            if fault.seconds > BACK_SECONDS:
                world.later(fault.seconds, hands_over)  # and takes it back
        elif kind == "scale-down":
            self._scales_down(host, fault.seconds)
        elif kind == "declare":
            self._declares(self.of_host[fault.host], fault.seconds)
        elif kind == "delete":
            self._deletes(self.of_host[fault.host])
        elif kind == "gone":
            self._is_gone(host)
        elif kind == "forget":
            self._forgets(host, fault.other)
        world.later(SILENCE_SECONDS, partial(self._falls_silent, open_before))

    def _falls_silent(self, connections: list[Connection]) -> None:
        """Of these connections, ends that have heard nothing for so long give up."""
        now = self.world.now
        for each in connections:
            for side, end in enumerate(each.ends):
                other = each.ends[1 - side]
                is_half_open = each.is_told[1 - side] or each.lives[1 - side] != other.host.life
                is_blocked = self.network.free_at(other.host.name, end.host.name) > now
                is_silent = is_half_open or is_blocked or other.host.stands_until > now
                if is_silent and not each.is_told[side] and end.host.life == each.lives[side]:
                    assert isinstance(end, Line)
                    end.host.at(now, end.close)

    def _stops(self, host: Host, seconds: float) -> None:
        """In good order: all is synced."""
        broker = self._runs(host.name)
        if broker is not None:
            if broker.is_live:
                broker.store.disk.flush()
            self._ends(host, False, seconds)

    def _hands_over(self, node: Node) -> None:
        live = node.live
        other = next((each for each in self._running(node) if each is not live), None)
        if live is None or other is None or live.leaving is not None:
            return

        def fenced() -> None:
            if node.live is live:
                self.world.tell(f"{live.name} serves no more")
                self.watch.handed_over += 1
                node.live = None
                node.loses_programs()
                live.waits()
                self._is_taken_over(node, live)

        live.host.at(self.world.now, fenced)

    def _scales_down(self, host: Host, seconds: float) -> None:
        node, live = self.of_host[host.name], self._runs(host.name)
        if node.name in self.cast.nodes[:2] or len(node.hosts) > 1 or live is None:
            return
        names = [each for each in self.nodes if each != node.name]
        wanted = self.world.random.sample(names, self.world.random.randint(0, len(names)))
        uris = tuple(uri_of(host) for each in wanted for host in self.nodes[each].hosts)

        def leaves() -> None:
            if live.is_live and live.leaving is None and live.admits:
                ended = partial(self._has_left, seconds=seconds)
                live.leaving = Leaving(live, ScaleDown(uris, "", None, None), ended)
                live.leaving.begin()

        host.at(self.world.now, leaves)

    def _has_left(self, broker: Broker, is_whole: bool, *, seconds: float) -> None:
        self.world.tell(f"{broker.name} has left" if is_whole else f"{broker.name} keeps the rest")
        broker.store.disk.flush()
        self._ends(broker.host, False, seconds)
        if is_whole:
            self.watch.leaves(broker.node)
            broker.node.empties()
            if seconds >= STAYS_AWAY_SECONDS:
                self._stays_down.add(broker.name)

    def _declares(self, node: Node, seconds: float) -> None:
        """Programs need a queue here that others have."""
        for queue in QUEUES:
            if node.serves is not None and queue not in node.store.memory.settings:
                delay = DELAYS[int(seconds * 1000) % len(DELAYS)]
                node.store.declare(queue, Settings(delay, False))

    def _deletes(self, node: Node) -> None:
        """What is on its way to an empty queue comes to none."""
        for queue in QUEUES:
            messages = node.store.memory.queues.get(queue)
            if node.serves is not None and messages is not None and not messages:
                node.consumers.pop(queue, None)
                node.store.delete(queue)
                self.watch.deletes(node, queue)

    def _is_gone(self, host: Host) -> None:
        node = self.of_host[host.name]
        if node.name in self.cast.nodes[:2]:
            return
        for each in node.hosts:
            self._stays_down.add(each)
            self.ends(self.hosts[each], loses_power=True)
        self._to_be_forgotten += 1
        self.world.later(self.world.between(1.0, 3.0), partial(self._is_forgotten, node))

    def _is_forgotten(self, node: Node) -> None:
        """By a live, of which the others hear, or by a backup if no live knows it any more; then by
        those for which it was there when they did."""
        first = sorted(self._all(), key=lambda each: not each.is_live)
        if self._is_forgotten_by_one(node, first):
            self.world.later(TOLD_SECONDS, partial(self._is_forgotten_by_rest, node))
        else:
            self._to_be_forgotten -= 1

    def _is_forgotten_by_rest(self, node: Node) -> None:
        for each in self._all():
            self._is_forgotten_by_one(node, [each])
        self._to_be_forgotten -= 1

    def _all(self) -> list[Broker]:
        return [each for name in self.names if (each := self._runs(name)) is not None]

    def _is_forgotten_by_one(self, node: Node, brokers: list[Broker]) -> bool:
        is_done = any(each.forgets(node.id) for each in brokers)
        self.watch.forgotten += is_done
        return is_done

    def _forgets(self, host: Host, other: str) -> None:
        """Somebody believes that a node that is missing is gone for good."""
        broker, node = self._runs(host.name), self.of_host[other]
        if broker is not None and node.live is None:
            host.at(self.world.now, partial(self._is_forgotten_by, broker, node))

    def _is_forgotten_by(self, broker: Broker, node: Node) -> None:
        self.watch.forgotten += broker.forgets(node.id)

    # --- at rest ------------------------------------------------------------------------------

    def misses(self) -> str:
        if self._to_be_forgotten:
            return "a node is to be forgotten"
        for name, host in self.hosts.items():
            if name not in self._stays_down and not host.is_up:
                return f"{name} is not up"
        for node in self.nodes.values():
            if not node.store.is_synced:
                return f"not all is synced at {node.name}"
            is_down = all(each in self._stays_down for each in node.hosts)
            if not is_down and (node.live is None or not node.live.admits):
                return f"nobody serves {node.name}"
            if node.live is not None and node.live.leaving is not None:
                return f"{node.name} finds out whether it can leave"
        return self.watch.misses([each for each in self.brokers.values() if each.runs])
