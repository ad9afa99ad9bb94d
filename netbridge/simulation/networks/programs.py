"""Programs at all brokers that publish, and consumers that come, go and move."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.simulation.networks.cast import KEPT, QUEUES
from shmbroker.netbridge.simulation.peers.programs import Programs as OfQueues

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.networks.scene import Scene

MOVE_SECONDS: Final = 0.1, 1.0
CONSUMERS_MAX: Final = 2
TAKES: Final = 4
"""A consumer."""
ROOM: Final = 16
"""Of a queue, while programs are busy: what nobody consumes fills it and holds the link."""


class Programs(OfQueues):
    scene: Scene

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self.scene = scene
        self.consumers: Counter[tuple[str, str]] = Counter()
        """By nodes and queues."""
        self.room: float = ROOM

    def begin(self, busy_until: float) -> None:
        super().begin(busy_until)
        self._move()

    def rest(self) -> None:
        super().rest()
        self.room = float("inf")

    def publishes(self, node: str) -> None:
        self.publish(node, self.scene.world.random.choice((*QUEUES, *QUEUES, KEPT)))

    def takes(self, node: str, queue: str) -> int:
        return TAKES * self.consumers[node, queue]

    def _move(self) -> None:
        """A consumer comes or goes."""
        random = self.scene.world.random
        if not self.is_busy:
            return
        place = random.choice(self.scene.cast.nodes), random.choice((*QUEUES, KEPT))
        if self.consumers[place] and random.random() < 0.5:
            self.consumers[place] -= 1
        elif self.consumers[place] < CONSUMERS_MAX:
            self.consumers[place] += 1
        self.scene.world.later(random.uniform(*MOVE_SECONDS), self._move)
