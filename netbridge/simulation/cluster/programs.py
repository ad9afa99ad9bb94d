"""Programs at the nodes: they publish, and consume for a while, with and without selectors."""

from __future__ import annotations

from functools import partial
from typing import Final

from shmbroker.netbridge.cluster.balancing import HERE
from shmbroker.netbridge.simulation.cluster.cast import KINDS, QUEUES
from shmbroker.netbridge.simulation.cluster.node import Node, Selectors
from shmbroker.netbridge.simulation.cluster.store import Message
from shmbroker.netbridge.simulation.cluster.watch import Watch
from shmbroker.netbridge.simulation.world import World

PUBLISH_SECONDS: Final = 0.1, 0.8
BURSTS: Final = (1, 1, 2, 5)
STAYS_SECONDS: Final = 0.2, 2.0
TAKE_SECONDS: Final = 0.05, 0.25
HOLD_SECONDS: Final = 0.0, 0.15
IN_HAND: Final = 3
TAKERS: Final[tuple[Selectors, ...]] = ((), (), KINDS[:1], KINDS[1:])


class Programs:
    def __init__(self, world: World, nodes: list[Node], watch: Watch) -> None:
        self._world, self._nodes, self._watch = world, nodes, watch
        self.published = 0
        self._publishes_until = 0.0
        self._rest: dict[tuple[str, str], Selectors | None] | None = None
        """Who consumes once all is healed."""

    def begin(self, publishes_until: float) -> None:
        self._publishes_until = publishes_until
        for node in self._nodes:
            for queue in QUEUES:
                self._publish(node, queue)
                self._come_and_go(node, queue)
                self._consume(node, queue)

    # --- producers ----------------------------------------------------------------------------

    def _publish(self, node: Node, queue: str) -> None:
        world = self._world
        if world.now >= self._publishes_until:
            return
        world.later(world.between(*PUBLISH_SECONDS), partial(self._publish, node, queue))
        if node.serves is None or queue not in node.store.memory.queues:
            return
        producer = f"{node.name}{world.random.randint(1, 2)}"
        for _ in range(world.random.choice(BURSTS)):
            self.published += 1
            kind = world.random.choice(KINDS)
            self._send(node, Message(self.published, queue, producer, node.id, kind))

    def _send(self, node: Node, message: Message) -> None:
        live = node.serves
        assert live is not None
        to = live.carrying.turn(message.queue, message.kind)
        confirmed = partial(self._watch.confirms, message)
        self._watch.publishes(live, message, to)
        if to == HERE:
            node.store.publish(message, confirmed)
        else:
            node.store.send(to, message, confirmed)

    # --- consumers ----------------------------------------------------------------------------

    def _come_and_go(self, node: Node, queue: str) -> None:
        world = self._world
        if self._rest is not None:
            return
        world.later(world.between(*STAYS_SECONDS), partial(self._come_and_go, node, queue))
        if node.serves is not None:
            self._are(node, queue, self._drawn())

    def _drawn(self) -> Selectors | None:
        random = self._world.random
        return random.choice(TAKERS) if random.random() < 0.5 else None

    def _are(self, node: Node, queue: str, wanted: Selectors | None) -> None:
        """From now on these take from it; None: nobody."""
        if wanted == node.consumers.get(queue):
            return
        node.in_hand.pop(queue, None)
        if wanted is None or queue not in node.store.memory.queues:
            node.consumers.pop(queue, None)
        else:
            node.consumers[queue] = wanted

    def rest(self) -> None:
        """From now on consumers stay as they are."""
        if self._rest is None:
            self._rest = {
                (node.name, queue): self._drawn() for node in self._nodes for queue in QUEUES
            }
        for node in self._nodes:
            if node.serves is not None:
                for queue in QUEUES:
                    self._are(node, queue, self._rest[node.name, queue])

    def _consume(self, node: Node, queue: str) -> None:
        world = self._world
        world.later(world.between(*TAKE_SECONDS), partial(self._consume, node, queue))
        if queue not in node.consumers or node.serves is None:
            return
        held = node.in_hand.setdefault(queue, set())
        waiting = node.serves.carrying.waiting(queue)
        taken = [each.number for each in waiting if node.takes_here(queue, each.kind)]
        for number in taken[: IN_HAND - len(held)]:
            held.add(number)
            wait = world.between(*HOLD_SECONDS)
            world.later(wait, partial(self._acknowledge, node, queue, held, number))

    def _acknowledge(self, node: Node, queue: str, held: set[int], number: int) -> None:
        """Unless it was given back: then it is another hand that has it, if any."""
        if node.in_hand.get(queue) is not held:
            return
        held.discard(number)
        if node.serves is not None:  # else it is given back
            acknowledged = partial(self._watch.acknowledges, number)
            node.store.acknowledge(queue, number, acknowledged)
