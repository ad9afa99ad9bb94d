"""Programs at all brokers: they publish and consume, while they are struck."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.simulation.peers.message import Message
from shmbroker.netbridge.simulation.peers.store import Content

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.peers.scene import Scene

PUBLISH_SECONDS: Final = 0.03, 0.4
BURSTS: Final = (1, 1, 2, 6)
CONSUME_SECONDS: Final = 0.02, 0.2


class Programs(ABC):
    scene: Scene

    def __init__(self) -> None:
        self._busy_until = 0.0
        self.published = 0

    def begin(self, busy_until: float) -> None:
        self._busy_until = busy_until
        for node in self.scene.nodes:
            self._publish(node)
            self._consume(node)

    def rest(self) -> None:
        """They publish and change nothing any more."""
        self._busy_until = 0.0

    @property
    def is_busy(self) -> bool:
        return self.scene.world.now < self._busy_until

    # --- publishing ---------------------------------------------------------------------------

    def _publish(self, node: str) -> None:
        random = self.scene.world.random
        if not self.is_busy:
            return
        for _ in range(random.choice(BURSTS)):
            self.publishes(node)
        pause = random.uniform(*PUBLISH_SECONDS)
        self.scene.world.later(pause, partial(self._publish, node))

    def publish(self, node: str, key: str, *, is_mandatory: bool = False) -> int:
        """Its number; 0: nobody serves, or takes it."""
        live = self.scene.serving(node)
        if live is None:
            return 0
        self.published += 1
        message = Message(self.published, key, is_mandatory=is_mandatory)
        return self.published if live.publishes(message) else 0

    @abstractmethod
    def publishes(self, node: str) -> None:
        """Something, if somebody serves."""

    # --- consuming ----------------------------------------------------------------------------

    def _consume(self, node: str) -> None:
        world = self.scene.world
        if self.scene.serving(node) is not None:
            store = self.scene.nodes[node].store
            for queue in store.memory.queues:
                some = store.visible(queue)[: world.random.randint(0, self.takes(node, queue))]
                if some:
                    store.does(partial(_acknowledged, queue, some))
        world.later(world.between(*CONSUME_SECONDS), partial(self._consume, node))

    @abstractmethod
    def takes(self, node: str, queue: str) -> int:
        """So many messages at once, at most."""


def _acknowledged(queue: str, messages: list[Message], content: Content) -> None:
    content.acknowledge(queue, messages)
