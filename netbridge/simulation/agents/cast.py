"""Which brokers there are and which agents they have: drawn from the seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from shmbroker.netbridge.agent.option import HOPS_MAX, QUEUE, Mode
from shmbroker.netbridge.simulation.peers.node import hosts_of
from shmbroker.netbridge.wire.words import AGENT_LINK

EXCHANGE: Final = "trade"
KIND: Final = "topic"
KEYS: Final = ("de", "fr", "it")
EVERY: Final = "#"
ALL: Final = "all"
"""The queue that is bound to every key, and stays so."""
SOME: Final = "some"
"""The queue whose bindings come and go."""


@dataclass(frozen=True, slots=True)
class Agent:
    at: str
    mode: Mode
    to: str
    hops: int = HOPS_MAX

    @property
    def link(self) -> str:
        return f"{AGENT_LINK}{EXCHANGE}@{self.to} {self.mode.word}"

    @property
    def queue(self) -> str:
        """In which messages wait that go there."""
        return f"{QUEUE}{EXCHANGE}.{self.to}"


S, A, E, B, V = (
    Mode.SUBSCRIBE, Mode.FORWARD_ALL, Mode.FORWARD_ELSE, Mode.BOTH, Mode.SERVICE,
)  # fmt: skip
CASTS: Final[Mapping[str, tuple[tuple[str, Mode, str], ...]]] = {
    "subscribe": (("a", S, "b"),),
    "forward all": (("a", A, "b"),),
    "forward else": (("a", E, "b"),),
    "both": (("a", B, "b"),),
    "service": (("a", V, "b"),),
    "subscribe and forward": (("a", S, "b"), ("a", A, "b")),
    "both ways": (("a", A, "b"), ("b", A, "a")),
    "mutual": (("a", S, "b"), ("b", S, "a")),
    "ring": (("a", A, "b"), ("b", A, "c"), ("c", A, "a")),
    "chain": (("a", A, "b"), ("b", A, "c"), ("c", A, "d")),
    "hub": (("a", S, "b"), ("a", A, "b"), ("c", S, "b"), ("c", A, "b")),
    "both of two": (("a", B, "b"), ("c", B, "b")),
    "both and on": (("a", B, "b"), ("a", A, "c")),
}
NAMES: Final = tuple(CASTS)
CAREFUL: Final = frozenset({"ring", "both", "both of two", "subscribe and forward"})
"""These come twice as often."""
TURNS: Final = (*NAMES, *sorted(CAREFUL))


@dataclass(frozen=True, slots=True)
class Cast:
    name: str
    nodes: tuple[str, ...]
    agents: tuple[Agent, ...]
    pairs: frozenset[str]
    with_all: frozenset[str]
    """Nodes that have the queue `ALL`."""

    def hosts(self) -> tuple[str, ...]:
        return tuple(host for node in self.nodes for host in hosts_of(node, self.pairs))

    def of(self, node: str) -> tuple[Agent, ...]:
        return tuple(each for each in self.agents if each.at == node)

    def queues(self, node: str) -> tuple[str, ...]:
        return (ALL, SOME) if node in self.with_all else (SOME,)


def cast_of(seed: int) -> Cast:
    random = Random(seed * 104729 + 7)
    name = TURNS[seed % len(TURNS)]
    hops = random.choice((1, 2, 3)) if name == "chain" else HOPS_MAX
    agents = tuple(Agent(at, mode, to, hops) for at, mode, to in CASTS[name])
    nodes = tuple(sorted({node for each in agents for node in (each.at, each.to)}))
    return Cast(
        name,
        nodes,
        agents,
        frozenset(each for each in nodes if random.random() < 0.3),
        frozenset(each for each in nodes if _has_all(random, each, agents)),
    )


def _has_all(random: Random, node: str, agents: tuple[Agent, ...]) -> bool:
    """Not where an agent has what nobody takes; and sometimes not there either."""
    modes = {each.mode for each in agents}
    if not modes & {Mode.FORWARD_ELSE, Mode.SERVICE}:
        return True
    return all(each.at != node for each in agents) and random.random() < 0.5
