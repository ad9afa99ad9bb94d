"""A store, and who serves it: a broker, or whoever of a pair is live.

Shared memory is of a host: a backup has what was synced.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.peers.store import Store
from shmbroker.netbridge.simulation.world import World

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.peers.broker import Broker

TAKEOVER_SECONDS: Final = 0.02, 0.4
SECOND: Final = "2"
"""The name of a node's backup ends so."""


def hosts_of(node: str, pairs: frozenset[str]) -> tuple[str, ...]:
    return (node, node + SECOND) if node in pairs else (node,)


def node_of(host: str) -> str:
    return host.removesuffix(SECOND)


class Node:
    def __init__(self, world: World, name: str, hosts: tuple[Host, ...]) -> None:
        self.world, self.name, self.hosts = world, name, hosts
        self.store = Store(Disk(world))
        self.epoch = 0
        self.live: Broker | None = None
        self.brokers: dict[Host, Broker] = {}
        self._memory_at: Host | None = None

    @property
    def id(self) -> bytes:
        return self.name.encode().ljust(16, b".")

    @property
    def is_served(self) -> bool:
        """By somebody who does not stand still."""
        live = self.live
        if live is None or not live.runs or self.world.now < live.host.stands_until:
            return False
        return live.is_live

    def starts(self, broker: Broker) -> None:
        self.brokers[broker.host] = broker
        self._looks()

    def ends(self, host: Host, loses_power: bool) -> None:
        self.brokers.pop(host, None)
        if loses_power and self._memory_at is host:
            self.store.loses_power()
            self._memory_at = None
        if self.live is not None and self.live.host is host:
            self.live = None
            self._looks()

    def _looks(self) -> None:
        """Whoever is there takes over."""
        if self.live is None:
            self.world.later(self.world.between(*TAKEOVER_SECONDS), self._takes_over)

    def _takes_over(self) -> None:
        if self.live is not None or not self.brokers:
            return
        broker = self.brokers[self.world.random.choice(list(self.brokers))]
        if self._memory_at is not None and self._memory_at is not broker.host:
            self.store.loses_power()
        self._memory_at, self.live = broker.host, broker
        self.epoch += 1
        self.world.tell(f"{broker.host.name} is live")
        broker.host.at(0.0, partial(self._serves, broker))

    def has_news(self) -> None:
        """Something is synced that may be shipped: by whoever is live now."""
        if self.live is not None:
            self.live.host.at(0.0, self.live.news)

    def _serves(self, broker: Broker) -> None:
        if self.live is broker:
            broker.serves()
