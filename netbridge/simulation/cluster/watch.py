"""Sees all nodes at once, and what must be true of a cluster.

Each confirmed message was consumed once or is there once, counted over all nodes.  Nothing waits
for a node that is there, or where nobody consumes while somebody else would and it may go there.
All know the same nodes, and of each what it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.cluster.balancing import HERE
from shmbroker.netbridge.cluster.option import OFF_WITH_REDISTRIBUTION, ON_DEMAND, STRICT
from shmbroker.netbridge.cluster.redistribution import Gives, Here
from shmbroker.netbridge.cluster.said import Told
from shmbroker.netbridge.cluster.scale_down import ScaleDown
from shmbroker.netbridge.election.question import Node as Id
from shmbroker.netbridge.simulation.cluster.node import Node, takes, uri_of
from shmbroker.netbridge.simulation.cluster.store import Message
from shmbroker.netbridge.simulation.world import Wrong

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.cluster.broker import Broker

GIVES: Final = frozenset({ON_DEMAND, OFF_WITH_REDISTRIBUTION})
BALANCES: Final = frozenset({ON_DEMAND, STRICT})
ROUNDING_SECONDS: Final = 1e-6
Seen = tuple[Here, float]
"""A queue, and since when its consumers are these."""
Place = tuple[Id, str, str]
"""A node, a queue, and a producer."""


def _taken(here: Here) -> tuple[bool, tuple[str, ...]]:
    return here.is_consumed, here.selectors


class Watch:
    def __init__(self, nodes: Mapping[str, Node], mode: str) -> None:
        self.nodes, self.mode = nodes, mode
        self._by_id = {each.id: each for each in nodes.values()}
        self.confirmed: dict[int, Message] = {}
        self.acknowledged: Counter[int] = Counter()
        self._may_come_twice: set[int] = set()
        """Sent to a node that has left, which could not confirm them any more."""
        self._last: dict[Place, int] = {}
        self._looked: dict[Broker, dict[str, Seen]] = {}
        """What each saw last."""
        self._seen: dict[tuple[Broker, Id], set[str]] = {}
        """Queues that a broker has known of a node."""
        self.balanced = self.redistributed = self.scaled_down = self.forgotten = 0
        self.handed_over = self.arrived = 0

    # --- messages -----------------------------------------------------------------------------

    def publishes(self, broker: Broker, message: Message, to: Id) -> None:
        if to == HERE:
            return
        self.balanced += 1
        name = f"{broker.name} sends {message.queue} to {self._by_id[to].name}"
        if self.mode not in BALANCES:
            raise Wrong(f"{name}, and nothing is balanced")
        known = broker.machine.adverts.of(to).queues.get(message.queue)
        if known is None:
            raise Wrong(f"{name}, which is not known to have it")
        if self.mode == STRICT:
            return
        if not known.is_consumed or not takes(known.selectors, message.kind):
            raise Wrong(f"{name}, where nobody takes it")
        if to not in broker.carrying.up:
            raise Wrong(f"{name}, and there is no link")

    def confirms(self, message: Message) -> None:
        self.confirmed[message.number] = message

    def acknowledges(self, number: int) -> None:
        self.acknowledged[number] += 1
        if self.acknowledged[number] > 1 and number not in self._may_come_twice:
            raise Wrong(f"message {number} was consumed twice")

    def arrives(self, broker: Broker, messages: list[Message]) -> None:
        """Each producer's messages in order, as far as they were not moved on their way."""
        self.arrived += len(messages)
        for each in messages:
            if each.moves:
                continue
            place = broker.node.id, each.queue, each.producer
            if each.number <= self._last.get(place, 0):
                raise Wrong(f"{each.number} comes to {broker.name} behind {self._last[place]}")
            self._last[place] = each.number

    def loses(self, node: Node) -> None:
        """What was not synced: it comes again."""
        self._last = {place: last for place, last in self._last.items() if place[0] != node.id}

    def parts(self, node: Node, to: Id, wanted: ScaleDown) -> None:
        """From now on it takes back what it has told of its queues."""
        uris = {uri_of(each) for each in self._by_id[to].hosts}
        if wanted.connectors and not uris & set(wanted.connectors):
            raise Wrong(f"{node.name} leaves to {self._by_id[to].name}, which was not named")
        node.has_parted = True
        node.always.clear()
        for (_, of), seen in self._seen.items():
            if of == node.id:
                seen.clear()

    def deletes(self, node: Node, queue: str) -> None:
        node.always.discard(queue)
        for (_, of), seen in self._seen.items():
            if of == node.id:
                seen.discard(queue)

    def leaves(self, node: Node) -> None:
        """It forgets what has come: who did not hear of it sends it again."""
        self.scaled_down += 1
        marks = node.store.memory.marks
        for other in self.nodes.values():
            ring = other.store.memory.towards.get(node.id)
            for position, message in ring.messages.items() if ring is not None else ():
                if position < marks.get(other.origin, 0):
                    self._may_come_twice.add(message.number)
        self.loses(node)

    # --- decisions ----------------------------------------------------------------------------

    def looks(self, broker: Broker, here: list[Here]) -> None:
        former, now = self._looked.get(broker, {}), broker.host.clock
        seen: dict[str, Seen] = {}
        for each in here:
            known = former.get(each.name)
            is_as_before = known is not None and _taken(known[0]) == _taken(each)
            seen[each.name] = each, known[1] if known is not None and is_as_before else now
        self._looked[broker] = seen

    def gives(self, broker: Broker, gives: tuple[Gives, ...]) -> None:
        for each in gives:
            name = f"{broker.name} gives {each.queue} away"
            here, since = self._looked[broker][each.queue]
            if here.delay is None:
                raise Wrong(f"{name}, and it is to stay")
            if broker.host.clock < since + here.delay - ROUNDING_SECONDS:
                raise Wrong(f"{name} too soon")
            if here.is_consumed and not (here.matches and here.selectors):
                raise Wrong(f"{name}, and somebody takes from it")
            for to in each.to:
                known = broker.machine.adverts.of(to.node).queues.get(each.queue)
                if known is None or not known.is_consumed or known.selectors != to.selectors:
                    raise Wrong(f"{name} to {self._by_id[to.node].name}, where nobody takes it")
                if to.node not in broker.carrying.up:
                    raise Wrong(f"{name} to {self._by_id[to.node].name}, and there is no link")

    def moves(self, broker: Broker, queue: str, messages: list[Message]) -> None:
        self.redistributed += len(messages)
        for each in messages:
            if broker.node.takes_here(queue, each.kind):
                raise Wrong(f"{broker.name} gives {each.number} away, which somebody takes here")

    # --- what they know -----------------------------------------------------------------------

    def knows(self, broker: Broker, link: int, told: Told) -> None:
        """What a node has had ever since, or has told and still has, is known of it."""
        live = broker.machine.present.get(link)
        node = None if live is None else self._by_id[live.node]
        if node is None or node.live is None or node.live.incarnation != told.incarnation:
            return
        if not broker.is_live:  # it asks nobody any more, and this came late
            self._seen.pop((broker, node.id), None)
            return
        queues = broker.machine.adverts.of(node.id).queues
        seen = self._seen.setdefault((broker, node.id), set())
        lacks = ((node.always | seen) & node.store.memory.settings.keys()) - queues.keys()
        if lacks and not node.has_parted and told.until == told.latest:
            raise Wrong(f"{broker.name} takes {sorted(lacks)} of {node.name} for gone")
        seen.update(queues)

    def logs(self, broker: Broker, state: str) -> None:
        if state == "duplicate id":
            raise Wrong(f"{broker.name} sees a copied store, and there is none")

    # --- at rest ------------------------------------------------------------------------------

    def misses(self, running: list[Broker]) -> str:
        """What is not as it is to be at rest; nothing if all is."""
        lives = [each.live for each in self.nodes.values() if each.live is not None]
        told = (
            *(self._knows_all(each, lives, running) for each in running),
            *(self._reads_all(each, lives) for each in lives),
            self._unsent(lives),
            self._stuck(lives),
        )
        return next((each for found in told for each in found), "")

    def _knows_all(
        self, broker: Broker, lives: list[Broker], running: list[Broker]
    ) -> Iterator[str]:
        """A live or a backup."""
        machine = broker.machine
        for there in lives:
            node = there.node
            if machine.forgotten != there.machine.forgotten:
                yield f"{broker.name} has forgotten others than {there.name}"
            if node is broker.node:
                if node.id in machine.lives:
                    yield f"{broker.name} has its own node among the others"
            elif machine.lives.get(node.id) != there.machine.me:
                yield f"{broker.name} knows {machine.lives.get(node.id)} of {node.name}"
            elif not machine.is_there(node.id):
                yield f"{broker.name} does not reach {there.name}"
        missing = [each for each in machine.lives if self._by_id[each].live is None]
        for each in missing:
            if machine.lives[each].epoch <= machine.forgotten.get(each, -1):
                yield f"{broker.name} knows {self._by_id[each].name}, which it was to forget"
        if broker.is_live:  # a backup does not hear how many its own live counts
            most = max(each.machine.quorum.seen_max for each in lives)
            told = max(each.machine.quorum.seen_max for each in running)  # by backups, too
            count = machine.count.lives
            if not len(lives) <= count >= most or (count > told and not missing):
                yield f"{broker.name} counts {count} lives, and others at most {most}"

    def _reads_all(self, live: Broker, lives: list[Broker]) -> Iterator[str]:
        adverts = live.machine.adverts
        for there in lives:
            shown = set(there.machine.adverts.board.adverts)
            if there is live:
                continue
            if not adverts.is_read(there.node.id):
                yield f"{live.name} was not told of the queues of {there.name}"
            elif set(adverts.of(there.node.id).queues.values()) != shown:
                yield f"{live.name} does not know the queues of {there.name}"
            elif adverts.of(there.node.id).queues.keys() != there.store.memory.settings.keys():
                yield f"{there.name} tells {live.name} of queues that it has not"

    def _unsent(self, lives: list[Broker]) -> Iterator[str]:
        for each in lives:
            for node, ring in each.store.memory.towards.items():
                if ring.messages and self._by_id[node].live is not None:
                    yield f"{list(ring.messages)} wait at {each.name} for {self._by_id[node].name}"

    def _stuck(self, lives: list[Broker]) -> Iterator[str]:
        for each in lives:
            node, content = each.node, each.store.memory
            for queue, messages in content.queues.items():
                for number, message in messages.items():
                    if node.takes_here(queue, message.kind):
                        yield f"{number} waits at {node.name}, where somebody takes it"
                    elif self._may_go(node, message) and any(
                        other.node.takes_here(queue, message.kind) for other in lives
                    ):
                        yield f"{number} waits at {node.name}, and others take it"

    def _may_go(self, node: Node, message: Message) -> bool:
        settings = node.store.memory.settings[message.queue]
        is_free = message.queue not in node.consumers or settings.matches
        return self.mode in GIVES and settings.delay is not None and is_free

    def counts(self) -> None:
        """Each confirmed message over all nodes, those that are down among them."""
        there: Counter[int] = Counter()
        for node in self.nodes.values():
            content = node.store.memory
            for messages in (*content.queues.values(), content.undeliverable):
                there.update(list(messages))
            for to, ring in content.towards.items():
                mark = self._by_id[to].store.memory.marks.get(node.origin, 0)
                there.update(each.number for at, each in ring.messages.items() if at >= mark)
        for number in self.confirmed.keys() | there.keys() | self.acknowledged.keys():
            found = there[number] + self.acknowledged[number]
            if not found and number in self.confirmed:
                raise Wrong(f"message {self.confirmed[number]} is lost")
            if found > 1 and number not in self._may_come_twice:
                raise Wrong(f"message {number} is there {there[number]} times, and was consumed "
                            f"{self.acknowledged[number]} times")  # fmt: skip
