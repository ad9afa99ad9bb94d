"""A broker with agents, and with those of others: a model of `netbridge/transferred/`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.agent import party
from shmbroker.netbridge.agent.codec import decode, encode
from shmbroker.netbridge.agent.option import Mode
from shmbroker.netbridge.agent.said import Joined, Wanted
from shmbroker.netbridge.link.ending import Reason
from shmbroker.netbridge.link.held import Held
from shmbroker.netbridge.simulation.agents.cast import ALL, EXCHANGE, KIND, Agent
from shmbroker.netbridge.simulation.agents.journey import Journey
from shmbroker.netbridge.simulation.agents.routing import Binding, Route, Subscription, route
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.peers.broker import Broker
from shmbroker.netbridge.simulation.peers.dialler import Dialler
from shmbroker.netbridge.simulation.peers.end import PeerEnd
from shmbroker.netbridge.simulation.peers.message import Message
from shmbroker.netbridge.simulation.peers.node import Node, hosts_of
from shmbroker.netbridge.simulation.peers.sink import Full, Goes, Refused, Verdict
from shmbroker.netbridge.simulation.peers.source import durable, volatile
from shmbroker.netbridge.simulation.peers.store import Content, Ring
from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import RETURNED, TargetKind

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.agents.scene import Scene

LOOK_SECONDS: Final = 0.2
ROOM: Final = 16
"""Of a queue that programs consume."""
TO_ALL: Final = Binding(ALL, "#")


class Catalog:
    """Of a node: it outlives its brokers."""

    def __init__(self) -> None:
        self.bindings: set[Binding] = set()
        self.subscriptions: dict[str, Subscription] = {}
        """By the names of their queues: in shared memory of one host."""

    def wanted(self, mode: Mode) -> frozenset[Wanted]:
        return frozenset(
            Wanted(each.key, b"", False)
            for each in self.bindings
            if each.is_exclusive or mode is not Mode.SERVICE
        )


@dataclass(slots=True, eq=False)
class Made:
    agent: Agent
    party: party.Near


@dataclass(slots=True, eq=False)
class Accepted:
    party: party.Far
    queue: str = ""


class AgentsBroker(Broker):
    scene: Scene

    def __init__(self, scene: Scene, host: Host, node: Node) -> None:
        super().__init__(scene, host, node)
        self.parties: dict[PeerEnd, Made | Accepted] = {}
        self._connections = 0

    @property
    def catalog(self) -> Catalog:
        return self.scene.catalogs[self.node.name]

    @property
    def agents(self) -> tuple[Agent, ...]:
        return self.scene.cast.of(self.node.name)

    def begins(self) -> None:
        self.drops_all()
        self._look()

    def drops_all(self) -> None:
        """What a broker before this one had of connections that it had."""
        self.catalog.subscriptions.clear()

    def links(self) -> list[Dialler]:
        return [
            Dialler(self, each.link, hosts_of(each.to, self.scene.pairs)) for each in self.agents
        ]

    # --- of an end ----------------------------------------------------------------------------

    def came(self, end: PeerEnd) -> None:
        self.parties[end] = Accepted(party.Far())

    def goes(self, end: PeerEnd) -> None:
        agent = next(each for each in self.agents if each.link == end.link)
        at = self.parties[end] = Made(agent, party.Near(EXCHANGE, agent.mode, agent.hops))
        self._sees(end, at)

    def gone(self, end: PeerEnd) -> None:
        at = self.parties.pop(end, None)
        if isinstance(at, Accepted) and at.queue:
            self.works(partial(self._drops, at.queue))

    def _drops(self, queue: str) -> None:
        self.catalog.subscriptions.pop(queue, None)

    def _look(self) -> None:
        for end, at in list(self.parties.items()):
            if isinstance(at, Made):
                self._sees(end, at)
        self.host.later(LOOK_SECONDS, self._look)

    def _sees(self, end: PeerEnd, at: Made) -> None:
        wanted = self.catalog.wanted(at.agent.mode) if at.agent.mode.subscribes else None
        self._does(end, at.party.looks(KIND, wanted))

    def heard(self, end: PeerEnd, body: Body) -> None:
        at = self.parties.get(end)
        if at is None:
            return
        try:
            self._does(end, at.party.heard(decode(body)))
        except Malformed as error:
            end.malformed(error)

    def _does(self, end: PeerEnd, acts: party.Acts) -> None:
        for act in acts:
            at = self.parties.get(end)
            if at is None:
                return
            if isinstance(act, party.Say):
                end.say(encode(act.what))
            elif isinstance(act, party.Look):
                self.host.at(0.0, partial(self._looks_again, end))
            elif isinstance(act, party.NotJoined):
                end.refuse(Reason.NOT_JOINED, act.why)
            elif isinstance(act, party.Ship):
                self._ships(end, at)
            elif isinstance(at, Accepted):
                self._serves(end, at, act)

    def _looks_again(self, end: PeerEnd) -> None:
        at = self.parties.get(end)
        if isinstance(at, Made):
            self._sees(end, at)

    def _ships(self, end: PeerEnd, at: Made | Accepted) -> None:
        at.party.is_open = True
        if isinstance(at, Made):
            end.ships(durable(self.node.store, at.agent.queue), EXCHANGE, TargetKind.EXCHANGE)
        elif at.queue in self.catalog.subscriptions:
            of = self.catalog.subscriptions[at.queue]
            end.ships(volatile(at.queue, of.ring, of.held), EXCHANGE, TargetKind.EXCHANGE)

    def _serves(self, end: PeerEnd, at: Accepted, act: party.Act) -> None:
        if isinstance(act, party.Answer):
            self.works(partial(self._answers, end))
        elif isinstance(act, party.Subscribe):
            self._connections += 1
            at.queue = f"$mta:{end.peer}.{self.host.name}{self.life}.{self._connections}"
        elif isinstance(act, party.Bind) and at.party.asked is not None:
            asked = at.party.asked
            self.works(partial(self._binds, end, at.queue, asked.hops, asked.wanted))

    def _answers(self, end: PeerEnd) -> None:
        at = self.parties.get(end)
        if isinstance(at, Accepted):
            self._does(end, at.party.answered(Joined()))

    def _binds(self, end: PeerEnd, queue: str, hops: int, wanted: frozenset[Wanted]) -> None:
        there = self.catalog.subscriptions.get(queue)
        if there is None:
            ring, node = Ring(), self.node
            held = Held(node.store.when_synced, lambda: ring.tail, node.has_news)
            there = Subscription(end.peer, hops, wanted, ring, held)
            self.catalog.subscriptions[queue] = there
        there.wanted = wanted
        at = self.parties.get(end)
        if isinstance(at, Accepted):
            self._does(end, at.party.bound())

    # --- messages -----------------------------------------------------------------------------

    def route(self, key: str, *, has_arrived: bool) -> Route:
        catalog = self.catalog
        subscriptions = catalog.subscriptions.values()
        return route(
            key, catalog.bindings, subscriptions, self.agents, has_arrived=has_arrived
        )

    def publishes(self, message: Message) -> bool:
        found = self.route(message.key, has_arrived=False)
        if self._is_full(found) or (found.is_empty and message.is_mandatory):
            return False
        onward = [
            (each.queue, replace(message, comes_back=each.mode is Mode.BOTH))
            for each in found.agents
        ]
        self.scene.watch.publishes(self.node.name, message, found)
        confirmed = partial(self.scene.watch.confirms, message.number)
        self.node.store.does(partial(_added, message, found.queues, onward), confirmed)
        private = replace(message, is_mandatory=False)
        self._tells(found.subscriptions, private, is_synced=True)
        self.node.store.when_synced(self.node.has_news)
        return True

    def _is_full(self, found: Route) -> bool:
        queues = self.node.store.memory.queues
        return any(len(queues[each]) >= ROOM for each in found.queues)

    def _tells(
        self, subscriptions: tuple[Subscription, ...], message: Message, *, is_synced: bool
    ) -> None:
        """Those of other brokers.  What is not synced may come again."""
        for each in subscriptions:
            each.ring.add(message)
            if not is_synced:
                each.held.hold(each.ring.tail - 1)
        if subscriptions:
            self.node.has_news()

    def verdict(self, end: PeerEnd, message: Message) -> Verdict:
        journey = Journey(self.node.name, end.peer, message)
        if journey.was_here:
            return Goes(lambda content: None)
        found = self.route(message.key, has_arrived=True)
        if found.is_empty and message.is_mandatory:
            return Refused(RETURNED)
        if self._is_full(found):
            return Full()
        onward = [
            (each.queue, journey.onward(to_subscriber=False))
            for each in found.agents
            if journey.goes_on(each.hops)
        ]
        private = tuple(each for each in found.subscriptions if journey.goes_on(each.hops))

        def then() -> None:
            self.scene.watch.arrives(self.node.name, journey, found)
            self._tells(private, journey.onward(to_subscriber=True), is_synced=False)
            self.node.store.when_synced(self.node.has_news)

        return Goes(partial(_added, message, found.queues, onward), then)

    def refused(self, end: PeerEnd, message: Message, why: str) -> None:
        self.scene.watch.returns(self.node.name, message, why)


def _added(
    message: Message,
    queues: frozenset[str],
    onward: list[tuple[str, Message]],
    content: Content,
) -> None:
    for queue in queues:
        content.queues[queue].append(message.plain)
    for ring, says in onward:
        content.rings[ring].add(says)
