"""What must be true of messages that are fetched: each is in one queue, and is consumed once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shmbroker.netbridge.simulation.peers.message import Message
from shmbroker.netbridge.simulation.peers.watch import Watch as OfLinks
from shmbroker.netbridge.simulation.world import Wrong

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.networks.scene import Scene


@dataclass(slots=True)
class Publication:
    message: Message
    node: str
    is_confirmed: bool = False


class Watch(OfLinks):
    def __init__(self) -> None:
        super().__init__()
        self.publications: dict[int, Publication] = {}
        self.arrived = 0
        self.scene: Scene

    def publishes(self, node: str, message: Message) -> None:
        self.publications[message.number] = Publication(message, node)

    def confirms(self, number: int) -> None:
        self.publications[number].is_confirmed = True

    def arrives(self, node: str, message: Message) -> None:
        if message.has_travelled:
            raise Wrong(f"{message.number} comes to {node}, and has travelled before")
        self.arrived += 1

    @property
    def _there(self) -> Counter[tuple[int, str]]:
        """Of each message and its queue: how many copies are in queues, or were consumed."""
        found: Counter[tuple[int, str]] = Counter()
        for node in self.scene.nodes.values():
            content = node.store.memory
            for queue in content.queues:
                copies = content.copies(queue)
                found.update({(number, queue): times for number, times in copies.items()})
        return found

    def looks(self) -> None:
        """At any time: nothing is in two queues."""
        super().looks()
        for (number, queue), times in self._there.items():
            if times > 1:
                raise Wrong(f"{number} is in {queue!r} {times} times, over all brokers")

    def counts(self) -> None:
        """At rest: what was confirmed is in its queue, or was consumed."""
        there = self._there
        for number, of in self.publications.items():
            if of.is_confirmed and not there[number, of.message.key]:
                raise Wrong(f"{number} of {of.node} is nowhere")
        known = {(number, of.message.key) for number, of in self.publications.items()}
        if not there.keys() <= known:
            raise Wrong(f"{there.keys() - known} were never published")
