"""Brokers that fetch from each other, and their programs, on one stage."""

from __future__ import annotations

from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.networks.broker import NetworksBroker
from shmbroker.netbridge.simulation.networks.cast import KEPT, QUEUES, Cast
from shmbroker.netbridge.simulation.networks.programs import Programs
from shmbroker.netbridge.simulation.networks.watch import Watch
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
        for node in self.nodes.values():
            node.store.declare(queues=(*QUEUES, KEPT))
        self.programs = Programs(self)

    def broker(self, host: Host, node: Node) -> NetworksBroker:
        return NetworksBroker(self, host, node)

    def misses(self) -> str:
        return self.unserved() or self._undemanded() or self._stuck()

    @property
    def _brokers(self) -> list[NetworksBroker]:
        return [each for each in self.lives if isinstance(each, NetworksBroker)]

    def fetched(self, node: str) -> set[str]:
        """Queues of which others want the messages of this broker, as each of them says."""
        return {
            queue
            for broker in self._brokers
            for end, at in broker.parties.items()
            if end.peer == node and at.demand is not None
            for queue in at.demand.wanted
        }

    def _undemanded(self) -> str:
        """What is wanted is what is told."""
        for broker in self._brokers:
            wanted = self.fetched(broker.node.name)
            told = {queue for way in broker.ways for queue in way.queues}
            if told != wanted:
                return f"{broker.host.name} was told {sorted(told)}, wanted is {sorted(wanted)}"
            if told != self._should(broker.node.name):
                return f"{broker.host.name} gives {sorted(told)}, and others are consumed"
        return ""

    def _should(self, node: str) -> set[str]:
        """As consumers are."""
        consumers = self.programs.consumers
        found = set()
        for each in self.cast.links:
            for queue in QUEUES:
                is_static = queue in each.terms.include_static
                is_consumed = consumers[each.at, queue] > 0 and not each.terms.static_bridge
                if each.of == node and (is_static or is_consumed):
                    found.add(queue)
                if each.at == node and each.is_duplex and consumers[each.of, queue] > 0:
                    found.add(queue)
        return found

    def _stuck(self) -> str:
        for broker in self._brokers:
            name, content = broker.node.name, broker.node.store.memory
            fetched = self.fetched(name)
            for queue, messages in content.queues.items():
                if messages and self.programs.consumers[name, queue]:
                    return f"messages of {queue!r} are not consumed at {name}"
                if queue in fetched and any(not each.has_travelled for each in messages):
                    return f"messages of {queue!r} are not fetched from {name}"
            if any(each.messages for each in content.rings.values()):
                return f"messages are on their way from {name}"
            if not broker.node.store.is_synced:
                return f"{name} is not synced"
        return ""

    def probes(self) -> None:
        """Some for each queue at each broker, while nothing happens."""
        for node in self.cast.nodes:
            for queue in (*QUEUES, KEPT, *QUEUES):
                self.programs.publish(node, queue)

    def is_for_nobody(self, before: int) -> str:
        """What was published since, has come over a link, and nobody wanted it there."""
        for name, node in self.nodes.items():
            static = {each for link in self.cast.of(name) for each in link.terms.include_static}
            for queue, messages in node.store.memory.queues.items():
                come = [each.number for each in messages
                        if each.has_travelled and each.number > before]  # fmt: skip
                if come and queue not in static:
                    return f"{come} came to {queue!r} of {name}, where nobody consumes"
        return ""
