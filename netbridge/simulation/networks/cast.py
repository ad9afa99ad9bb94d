"""Which brokers there are and what they fetch from each other: drawn from the seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from shmbroker.netbridge.network.demand import Terms
from shmbroker.netbridge.simulation.peers.node import hosts_of
from shmbroker.netbridge.wire.words import NETWORK_LINK

QUEUES: Final = ("orders", "events")
KEPT: Final = "local"
"""No link fetches it."""


@dataclass(frozen=True, slots=True)
class Fetches:
    at: str
    of: str
    terms: Terms
    is_duplex: bool

    @property
    def link(self) -> str:
        return f"{NETWORK_LINK}from-{self.of}"


CASTS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "two": (("a", "b"),),
    "mutual": (("a", "b"), ("b", "a")),
    "hub": (("b", "a"), ("c", "a"), ("d", "a")),
    "chain": (("a", "b"), ("b", "c")),
    "ring": (("a", "b"), ("b", "c"), ("c", "a")),
}


@dataclass(frozen=True, slots=True)
class Cast:
    name: str
    nodes: tuple[str, ...]
    links: tuple[Fetches, ...]
    pairs: frozenset[str]

    def hosts(self) -> tuple[str, ...]:
        return tuple(host for node in self.nodes for host in hosts_of(node, self.pairs))

    def of(self, node: str) -> tuple[Fetches, ...]:
        return tuple(each for each in self.links if each.at == node)


def cast_of(seed: int) -> Cast:
    random = Random(seed * 104729 + 11)
    name = random.choice([*CASTS])
    ways = CASTS[name]
    may_be_duplex = name not in ("mutual", "ring")
    links = tuple(
        Fetches(at, of, _terms(random), may_be_duplex and random.random() < 0.3) for at, of in ways
    )
    nodes = tuple(sorted({node for way in ways for node in way}))
    return Cast(name, nodes, links, frozenset(each for each in nodes if random.random() < 0.3))


def _terms(random: Random) -> Terms:
    static = random.random() < 0.2
    return Terms(
        prefetch=random.choice((1, 3, 10, 1000)),
        include_static=QUEUES[:1] if static else (),
        exclude=(KEPT,),
        static_bridge=static and random.random() < 0.5,
    )
