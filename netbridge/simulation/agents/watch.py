"""What must be true of messages that agents carry: each copy is there once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shmbroker.netbridge.simulation.agents.broker import TO_ALL
from shmbroker.netbridge.simulation.agents.cast import ALL, SOME
from shmbroker.netbridge.simulation.agents.copies import copies
from shmbroker.netbridge.simulation.agents.journey import Journey
from shmbroker.netbridge.simulation.agents.routing import Binding, Route
from shmbroker.netbridge.simulation.peers.message import Message
from shmbroker.netbridge.simulation.peers.watch import Watch as OfLinks
from shmbroker.netbridge.simulation.world import Wrong
from shmbroker.netbridge.wire.words import RETURNED

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.agents.scene import Scene


@dataclass(slots=True)
class Publication:
    message: Message
    node: str
    must: Counter[tuple[str, str]]
    """Queues that have it for sure, once it is confirmed: those that stay bound."""
    goes: bool
    """Over a link, at least."""
    is_confirmed: bool = False
    taken: set[str] = field(default_factory=set)
    """Nodes to which it has come, and where somebody took it."""
    returned: int = 0


class Watch(OfLinks):
    def __init__(self) -> None:
        super().__init__()
        self.publications: dict[int, Publication] = {}
        self._bound: dict[str, set[str]] = {}
        """By nodes: keys to which the queue `SOME` was bound at some time."""
        self.arrived = self.dropped = self.returned = self.came_back = self.hops_most = 0
        self.scene: Scene

    # --- events -------------------------------------------------------------------------------

    def publishes(self, node: str, message: Message, found: Route) -> None:
        scene = self.scene
        bound = {
            each: frozenset(scene.catalogs[each].bindings if each == node else self._steady(each))
            for each in scene.cast.nodes
        }
        must = copies(scene.cast, bound, node, message.key, has_links=False)
        self.publications[message.number] = Publication(message, node, must, bool(found.agents))

    def _steady(self, node: str) -> frozenset[Binding]:
        return frozenset({TO_ALL} if node in self.scene.cast.with_all else ())

    def confirms(self, number: int) -> None:
        self.publications[number].is_confirmed = True

    def binds(self, node: str, binding: Binding) -> None:
        self._bound.setdefault(node, set()).add(binding.key)

    def arrives(self, node: str, journey: Journey, found: Route) -> None:
        been = (*journey.message.visited, journey.sender)
        comes_back = been[0] == node and len(been) == 2
        self.came_back += comes_back
        if been[0] in been[2:3]:  # it came back, and goes on from there
            been = been[1:]
        if len(set(been)) < len(been) or (node in been and not comes_back):
            raise Wrong(f"{journey.message.number} comes to {node}, and was at {been}")
        most = max(each.hops for each in self.scene.cast.agents)
        if len(been) > most:
            raise Wrong(f"{journey.message.number} has come over {len(been)} agents, not {most}")
        self._finds_its_way_back(node, journey)
        self.hops_most = max(self.hops_most, len(been))
        self.arrived += 1
        if not found.is_empty:
            self.publications[journey.message.number].taken.add(node)

    def _finds_its_way_back(self, node: str, journey: Journey) -> None:
        """What nobody has where it was published is sent when the bindings of that are here."""
        back_to = journey.sender
        if journey.message.comes_back and not journey.message.visited:
            bound = self.scene.catalogs[node].subscriptions.values()
            if not any(each.node == back_to and each.takes(journey.message.key) for each in bound):
                raise Wrong(f"{journey.message.number} is at {node}, and nothing is bound for "
                            f"{back_to}")  # fmt: skip

    def returns(self, node: str, message: Message, why: str) -> None:
        if why != RETURNED:
            raise Wrong(f"{message.number} was refused: {why}")
        of = self.publications[message.number]
        if not of.message.is_mandatory:
            raise Wrong(f"{message.number} came back to {node}, and is not mandatory")
        self.returned += 1
        of.returned += 1

    # --- what is true -------------------------------------------------------------------------

    def looks(self) -> None:
        """At any time: nothing is anywhere twice."""
        super().looks()
        for node in self.scene.cast.nodes:
            for queue in self.scene.cast.queues(node):
                for number, times in self.copies(node, queue).items():
                    if times > 1:
                        raise Wrong(f"{number} is in {queue!r} of {node} {times} times")
                    self._belongs(node, queue, self.publications[number].message)

    def copies(self, node: str, queue: str) -> Counter[int]:
        return self.scene.nodes[node].store.memory.copies(queue)

    def _belongs(self, node: str, queue: str, message: Message) -> None:
        if queue == SOME and message.key not in self._bound.get(node, ()):
            raise Wrong(f"{message.number} is in {queue!r} of {node}, which was never bound so")

    def counts(self) -> None:
        """At rest: what was confirmed is where it must be."""
        there = {
            (node, queue): self.copies(node, queue)
            for node in self.scene.cast.nodes
            for queue in self.scene.cast.queues(node)
        }
        for number, of in self.publications.items():
            if not of.is_confirmed:
                continue
            for node, queue in of.must:
                is_local = node == of.node
                if (is_local or queue == ALL) and not there[node, queue][number]:
                    raise Wrong(f"{number} of {of.node} is not in {queue!r} of {node}")
            if of.goes and of.message.is_mandatory and not of.taken and not of.returned:
                raise Wrong(f"{number} of {of.node} is mandatory: neither taken nor returned")

    def counts_exactly(self, probes: dict[int, tuple[str, str]]) -> None:
        """Of what was published while nothing happened: by number, where and with which key."""
        cast = self.scene.cast
        bound = {each: frozenset(self.scene.catalogs[each].bindings) for each in cast.nodes}
        for number, (node, key) in probes.items():
            wanted = copies(cast, bound, node, key, has_links=True)
            found = Counter(
                {
                    (each, queue): self.copies(each, queue)[number]
                    for each in cast.nodes
                    for queue in cast.queues(each)
                }
            )
            if +found != wanted:
                raise Wrong(f"{number} of {node} with {key!r} is at {dict(+found)}, not "
                            f"{dict(wanted)}")  # fmt: skip
