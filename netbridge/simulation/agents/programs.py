"""Programs at all brokers: they publish, consume, bind and unbind."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.agent.option import Mode
from shmbroker.netbridge.simulation.agents.broker import TO_ALL, AgentsBroker
from shmbroker.netbridge.simulation.agents.cast import KEYS, SOME
from shmbroker.netbridge.simulation.agents.routing import Binding
from shmbroker.netbridge.simulation.peers.message import Message

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.agents.scene import Scene

PUBLISH_SECONDS: Final = 0.03, 0.4
BURSTS: Final = (1, 1, 2, 6)
CONSUME_SECONDS: Final = 0.02, 0.2
BIND_SECONDS: Final = 0.1, 1.5
MANDATORY_EACH: Final = 3


class Programs:
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._busy_until = 0.0
        self.published = 0

    def begin(self, busy_until: float) -> None:
        self._busy_until = busy_until
        for node in self._scene.cast.nodes:
            if node in self._scene.cast.with_all:
                self._scene.catalogs[node].bindings.add(TO_ALL)
            self._publish(node)
            self._consume(node)
            self._bind(node)

    def rest(self) -> None:
        """They publish and bind nothing any more."""

    @property
    def _is_busy(self) -> bool:
        return self._scene.world.now < self._busy_until

    def _serving(self, node: str) -> AgentsBroker | None:
        found = self._scene.nodes[node]
        live = found.live
        return live if found.is_served and isinstance(live, AgentsBroker) and live.is_live else None

    # --- publishing ---------------------------------------------------------------------------

    def _publish(self, node: str) -> None:
        random = self._scene.world.random
        if not self._is_busy:
            return
        for _ in range(random.choice(BURSTS)):
            self.publish(node, random.choice(KEYS), random.randrange(MANDATORY_EACH) == 0)
        pause = random.uniform(*PUBLISH_SECONDS)
        self._scene.world.later(pause, partial(self._publish, node))

    def publish(self, node: str, key: str, is_mandatory: bool = False) -> int:
        """Its number; 0: nobody serves, or takes it."""
        live = self._serving(node)
        if live is None:
            return 0
        self.published += 1
        message = Message(self.published, key, is_mandatory=is_mandatory)
        return self.published if live.publishes(message) else 0

    # --- consuming ----------------------------------------------------------------------------

    def _consume(self, node: str) -> None:
        world = self._scene.world
        if self._serving(node) is not None:
            store = self._scene.nodes[node].store
            for queue in self._scene.cast.queues(node):
                there = min(len(each.queues[queue]) for each in (store.memory, store.synced))
                count = min(there, world.random.randint(0, 8))
                if count:
                    store.does(lambda content, of=queue, some=count: content.acknowledge(of, some))  # type: ignore[misc]
        world.later(world.between(*CONSUME_SECONDS), partial(self._consume, node))

    # --- binding ------------------------------------------------------------------------------

    def _bind(self, node: str) -> None:
        """One binding comes or goes."""
        random = self._scene.world.random
        if not self._is_busy:
            return
        if self._serving(node) is not None:
            of_service = any(each.mode is Mode.SERVICE for each in self._scene.cast.of(node))
            binding = Binding(SOME, random.choice(KEYS), of_service and random.random() < 0.7)
            bindings = self._scene.catalogs[node].bindings
            bindings ^= {binding}
            self._scene.watch.binds(node, binding)
        self._scene.world.later(random.uniform(*BIND_SECONDS), partial(self._bind, node))


