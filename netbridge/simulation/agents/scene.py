"""Brokers, their agents and their programs on one stage."""

from __future__ import annotations

from shmbroker.netbridge.simulation.agents.broker import AgentsBroker, Catalog, Made
from shmbroker.netbridge.simulation.agents.cast import KEYS, Cast
from shmbroker.netbridge.simulation.agents.programs import Programs
from shmbroker.netbridge.simulation.agents.watch import Watch
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.peers.node import Node
from shmbroker.netbridge.simulation.peers.scene import Scene as Peers
from shmbroker.netbridge.simulation.world import World


class Scene(Peers):
    watch: Watch
    programs: Programs

    def __init__(self, world: World, cast: Cast) -> None:
        watch = Watch()
        super().__init__(world, cast.name, cast.nodes, cast.pairs, watch)
        watch.scene = self
        self.cast = cast
        self.catalogs = {name: Catalog() for name in cast.nodes}
        for name, node in self.nodes.items():
            rings = tuple(each.queue for each in cast.of(name) if each.mode.forwards)
            node.store.declare(queues=cast.queues(name), rings=rings)
        self.programs = Programs(self)

    def broker(self, host: Host, node: Node) -> AgentsBroker:
        return AgentsBroker(self, host, node)

    def misses(self) -> str:
        return self.unserved() or self._unbound() or self._unconsumed()

    def _unbound(self) -> str:
        """What is wanted is what is bound, and nothing else is."""
        for name, catalog in self.catalogs.items():
            wanted = {
                each.at: self.catalogs[each.at].wanted(each.mode)
                for each in self.cast.agents
                if each.to == name and each.mode.subscribes
            }
            found = [(each.node, each.wanted) for each in catalog.subscriptions.values()]
            if sorted(found, key=lambda each: each[0]) != sorted(wanted.items()):
                return f"bindings of agents at {name} are not those that are wanted: {found}"
        for broker in self.lives:
            assert isinstance(broker, AgentsBroker)
            for at in broker.parties.values():
                if isinstance(at, Made) and at.agent.mode.forwards and not at.party.is_open:
                    return f"{at.agent.link} of {broker.host.name} does not forward"
        return ""

    def _unconsumed(self) -> str:
        for name, node in self.nodes.items():
            rings = node.store.memory.rings.values()
            if any(each.messages for each in rings) or not node.store.is_synced:
                return f"messages wait at {name}"
            if any(node.store.memory.queues.values()):
                return f"messages are not consumed at {name}"
        return ""

    def probes(self) -> dict[int, tuple[str, str]]:
        """One with each key at each broker, while nothing happens."""
        found = {}
        for node in self.cast.nodes:
            for key in KEYS:
                number = self.programs.publish(node, key)
                if number:
                    found[number] = node, key
        return found
