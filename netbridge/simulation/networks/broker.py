"""A broker that fetches, and that others fetch from: a model of `netbridge/networked/`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.network.codec import decode, encode
from shmbroker.netbridge.network.demand import Demand, Here, Terms
from shmbroker.netbridge.network.supply import Supply, Turn, Way, turns
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.networks.cast import KEPT, QUEUES, Fetches
from shmbroker.netbridge.simulation.peers.broker import Broker
from shmbroker.netbridge.simulation.peers.dialler import Dialler
from shmbroker.netbridge.simulation.peers.end import PeerEnd
from shmbroker.netbridge.simulation.peers.message import Message
from shmbroker.netbridge.simulation.peers.node import Node, hosts_of
from shmbroker.netbridge.simulation.peers.sink import Full, Goes, Verdict
from shmbroker.netbridge.simulation.peers.source import durable
from shmbroker.netbridge.simulation.peers.store import Content, Ring
from shmbroker.netbridge.simulation.world import Wrong
from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import TargetKind

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.networks.scene import Scene

LOOK_SECONDS: Final = 0.2
MOVE_SECONDS: Final = 0.05
TOGETHER: Final = 4


@dataclass(slots=True, eq=False)
class Party:
    """What is at an end."""

    demand: Demand | None = None
    """None: nothing comes by it."""
    has_told: bool = False
    supply: Supply | None = None
    """None: nothing goes by it."""
    ring: str = ""
    is_open: bool = False


class NetworksBroker(Broker):
    scene: Scene

    def __init__(self, scene: Scene, host: Host, node: Node) -> None:
        super().__init__(scene, host, node)
        self.parties: dict[PeerEnd, Party] = {}
        self._demands = {
            each.link: Demand(each.terms, is_duplex=each.is_duplex) for each in self.fetches
        }

    @property
    def fetches(self) -> tuple[Fetches, ...]:
        return self.scene.cast.of(self.node.name)

    def begins(self) -> None:
        self._look()
        self._move()

    def links(self) -> list[Dialler]:
        return [
            Dialler(self, each.link, hosts_of(each.of, self.scene.pairs)) for each in self.fetches
        ]

    # --- what is wanted -----------------------------------------------------------------------

    @property
    def here(self) -> tuple[Here, ...]:
        consumers = self.scene.programs.consumers
        return tuple(
            Here(each, consumers[self.node.name, each] > 0) for each in (*QUEUES, KEPT)
        )

    def _look(self) -> None:
        for end, at in list(self.parties.items()):
            if at.demand is not None:
                self._says(end, at, at.demand)
        self.host.later(LOOK_SECONDS, self._look)

    def _says(self, end: PeerEnd, at: Party, demand: Demand) -> None:
        words = demand.looks(self.here)
        if not at.has_told:
            at.has_told = True
            words = demand.up()
        for each in words:
            end.say(encode(each))

    def came(self, end: PeerEnd) -> None:
        at = self.parties[end] = Party(supply=Supply())
        self._goes_on(end, at)

    def goes(self, end: PeerEnd) -> None:
        fetches = next(each for each in self.fetches if each.link == end.link)
        supply = Supply() if fetches.is_duplex else None
        at = self.parties[end] = Party(self._demands[end.link], supply=supply)
        self._says(end, at, self._demands[end.link])
        if fetches.is_duplex:
            self._goes_on(end, at)

    def _goes_on(self, end: PeerEnd, at: Party) -> None:
        """With what was on its way, whatever is wanted now."""
        if self._ring_of(end) in self.node.store.memory.rings:
            at.ring = self._ring_of(end)
            self.works(partial(self._opens, end, at))

    def gone(self, end: PeerEnd) -> None:
        at = self.parties.pop(end, None)
        if at is not None and at.demand is not None:
            at.demand.down()

    def heard(self, end: PeerEnd, body: Body) -> None:
        at = self.parties.get(end)
        if at is None:
            return
        try:
            what = decode(body)
            if at.supply is None:
                raise Malformed("messages are wanted of an end that is not duplex")
            if at.supply.heard(what):
                self._wanted(end, at, at.supply)
        except Malformed as error:
            end.malformed(error)

    def _wanted(self, end: PeerEnd, at: Party, supply: Supply) -> None:
        if supply.is_duplex and at.demand is None:
            at.demand = Demand(Terms(supply.prefetch, exclude=(KEPT,)))
            self._says(end, at, at.demand)
        if not at.ring:
            at.ring = self._ring_of(end)
            self.works(partial(self._opens, end, at))

    def _ring_of(self, end: PeerEnd) -> str:
        return f"$link.{end.peer}.{end.link}"

    def _opens(self, end: PeerEnd, at: Party) -> None:
        store = self.node.store
        if at.ring not in store.memory.rings:
            store.does(lambda content: content.rings.update({at.ring: Ring()}))
        store.when_synced(partial(self.host.at, 0.0, partial(self._ships, end, at)))

    def _ships(self, end: PeerEnd, at: Party) -> None:
        if self.runs and self.parties.get(end) is at and not at.is_open:
            at.is_open = True
            end.ships(durable(self.node.store, at.ring), end.peer, TargetKind.NODE)

    # --- moving what is wanted ----------------------------------------------------------------

    @property
    def ways(self) -> tuple[Way, ...]:
        return tuple(
            Way(each.ring, each.supply.prefetch, each.supply.queues)
            for each in self.parties.values()
            if each.is_open and each.supply is not None
        )

    def _move(self) -> None:
        ways, rings = self.ways, self.node.store.memory.rings
        waiting = {each.ring: len(rings[each.ring].messages) for each in ways}
        for queue in sorted(frozenset[str]().union(*(each.queues for each in ways))):
            consumers = self.scene.programs.consumers[self.node.name, queue]
            for turn in turns(queue, ways, waiting, consumers):
                waiting[turn.ring] += self._batch(queue, turn)
        for each in ways:  # what was on its way before is more than one of which nothing was heard
            if each.queues and waiting[each.ring] > each.prefetch:
                raise Wrong(f"{waiting[each.ring]} messages are on their way in {each.ring}")
        self.host.later(MOVE_SECONDS, self._move)

    def _batch(self, queue: str, turn: Turn) -> int:
        """In one transaction, of what is synced: how many."""
        store = self.node.store
        fetched = [each for each in store.visible(queue) if is_fetched(each, turn)]
        chosen = fetched[: min(turn.most, TOGETHER)]
        if chosen:
            store.does(partial(_moved, queue, turn.ring, chosen), self.node.has_news)
        return len(chosen)

    # --- messages -----------------------------------------------------------------------------

    def publishes(self, message: Message) -> bool:
        store = self.node.store
        if len(store.memory.queues[message.key]) >= self.scene.programs.room:
            return False
        self.scene.watch.publishes(self.node.name, message)
        confirmed = partial(self.scene.watch.confirms, message.number)
        store.does(lambda content: content.queues[message.key].append(message), confirmed)
        return True

    def verdict(self, end: PeerEnd, message: Message) -> Verdict:
        if len(self.node.store.memory.queues[message.key]) >= self.scene.programs.room:
            return Full()
        self.scene.watch.arrives(self.node.name, message)
        there = replace(message, has_travelled=True)
        return Goes(lambda content: content.queues[message.key].append(there))

    def refused(self, end: PeerEnd, message: Message, why: str) -> None:
        raise Wrong(f"{message.number} was refused by {end.peer}: {why}")


def is_fetched(message: Message, turn: Turn) -> bool:
    """`ipc/sink/travelled.c`, with its number as the position."""
    return not message.has_travelled and message.number % turn.cycle == turn.turn


def _moved(queue: str, ring: str, chosen: list[Message], content: Content) -> None:
    for each in chosen:
        content.queues[queue].remove(each)
        content.rings[ring].add(each)
