"""Independent brokers on one stage: they start, serve, are struck, and are there again."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.simulation.end import Secret
from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.peers.broker import Broker
from shmbroker.netbridge.simulation.peers.end import PeerEnd
from shmbroker.netbridge.simulation.peers.node import Node, hosts_of, node_of
from shmbroker.netbridge.simulation.peers.watch import Watch
from shmbroker.netbridge.simulation.stage import Stage
from shmbroker.netbridge.simulation.world import World

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.peers.programs import Programs

DOWN_SECONDS: Final = 0.05, 1.0


class Scene(Stage):
    programs: Programs

    def __init__(
        self, world: World, name: str, nodes: tuple[str, ...], pairs: frozenset[str], watch: Watch
    ) -> None:
        self.name = name
        self.names = tuple(host for node in nodes for host in hosts_of(node, pairs))
        super().__init__(world)
        self.watch = watch
        self.pairs = pairs
        self.nodes = {
            name: Node(world, name, tuple(self.hosts[each] for each in hosts_of(name, pairs)))
            for name in nodes
        }
        self.disks = {name: self.nodes[node_of(name)].store.disk for name in self.names}
        self._secrets = 0

    @property
    def published(self) -> int:
        return self.programs.published

    def secret(self) -> Secret:
        self._secrets += 1
        return Secret(self._secrets.to_bytes(16, "little"))

    @abstractmethod
    def broker(self, host: Host, node: Node) -> Broker: ...

    def begin(self, busy_until: float) -> None:
        for host in self.hosts.values():
            host.is_up = False
            self.world.later(self.world.between(0.0, 0.2), partial(self.starts, host))
        self.world.tell(f"{self.name}, pairs: {sorted(self.pairs)}")
        self.programs.begin(busy_until)

    def starts(self, host: Host) -> None:
        if not host.is_up:
            host.starts()
            node = self.nodes[node_of(host.name)]
            node.starts(self.broker(host, node))

    def ends(self, host: Host, loses_power: bool) -> None:
        if not host.is_up:
            return
        if not loses_power:
            self.network.killed(host)
        host.ends()
        self.nodes[node_of(host.name)].ends(host, loses_power)
        self.world.later(self.world.between(*DOWN_SECONDS), partial(self.starts, host))

    def accepts(self, host: str) -> PeerEnd | None:
        """Somebody connects; None: nobody listens."""
        broker = self.nodes[node_of(host)].brokers.get(self.hosts[host])
        return None if broker is None or not broker.runs else broker.accepts()

    def strike(self, fault: Fault) -> None:
        super().strike(fault)
        host = self.hosts[fault.host]
        if fault.kind == "drop":
            self.watch.has_fault_of_frames = True
        elif fault.kind == "hand-over":
            self._hands_over(host)
        elif fault.kind == "stop":
            host.at(0.0, partial(self._stops, host, fault.seconds))

    def _hands_over(self, host: Host) -> None:
        """In good order: the disk has all of it."""
        node = self.nodes[node_of(host.name)]
        if node.live is not None and node.live.host is host:
            node.store.disk.flush()
        self.ends(host, loses_power=False)

    def _stops(self, host: Host, seconds: float) -> None:
        """Its links, and starts them again."""
        live = self.nodes[node_of(host.name)].live
        if live is None or live.host is not host:
            return
        for each in live.diallers:
            if not each.is_stopped:
                each.stop()
                host.later(seconds, each.start)

    def serving(self, node: str) -> Broker | None:
        """With whom programs work; None: they wait."""
        found = self.nodes[node]
        return found.live if found.is_served else None

    @property
    def lives(self) -> list[Broker]:
        return [each.live for each in self.nodes.values() if each.live is not None]

    def unserved(self) -> str:
        """What is not there yet of nodes and links."""
        for node in self.nodes.values():
            if not node.is_served or len(node.brokers) < len(node.hosts):
                return f"{node.name} is not served"
        for broker in self.lives:
            for each in broker.diallers:
                if not each.is_up:
                    return f"link {each.link} of {broker.host.name} is not up"
            for end in broker.ends:
                if end.waits:
                    return f"messages wait at {broker.host.name} for {end.peer}"
        return ""
