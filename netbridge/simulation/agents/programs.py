"""Programs at all brokers that publish to the exchange, bind and unbind."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.agent.option import Mode
from shmbroker.netbridge.simulation.agents.broker import TO_ALL
from shmbroker.netbridge.simulation.agents.cast import KEYS, SOME
from shmbroker.netbridge.simulation.agents.routing import Binding
from shmbroker.netbridge.simulation.peers.programs import Programs as OfQueues

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.agents.scene import Scene

BIND_SECONDS: Final = 0.1, 1.5
MANDATORY_EACH: Final = 3
TAKES: Final = 8


class Programs(OfQueues):
    scene: Scene

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self.scene = scene

    def begin(self, busy_until: float) -> None:
        for node in self.scene.cast.with_all:
            self.scene.catalogs[node].bindings.add(TO_ALL)
        super().begin(busy_until)
        for node in self.scene.nodes:
            self._bind(node)

    def publishes(self, node: str) -> None:
        random = self.scene.world.random
        is_mandatory = random.randrange(MANDATORY_EACH) == 0
        self.publish(node, random.choice(KEYS), is_mandatory=is_mandatory)

    def takes(self, node: str, queue: str) -> int:
        return TAKES

    def _bind(self, node: str) -> None:
        """One binding comes or goes."""
        random = self.scene.world.random
        if not self.is_busy:
            return
        if self.scene.serving(node) is not None:
            of_service = any(each.mode is Mode.SERVICE for each in self.scene.cast.of(node))
            binding = Binding(SOME, random.choice(KEYS), of_service and random.random() < 0.7)
            self.scene.catalogs[node].bindings ^= {binding}
            self.scene.watch.binds(node, binding)
        self.scene.world.later(random.uniform(*BIND_SECONDS), partial(self._bind, node))
