"""Who is in a cluster of the simulation, and with which settings: drawn from the seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from shmbroker.netbridge.cluster.option import (
    OFF,
    OFF_WITH_REDISTRIBUTION,
    ON_DEMAND,
    STRICT,
)

NAMES: Final = "abcdefghi"
SIZES: Final = {2: 28, 3: 40, 4: 18, 5: 6, 6: 3, 7: 2, 8: 2, 9: 1}
"""How many of a hundred clusters have so many nodes: large ones take long."""
MODES: Final = (ON_DEMAND, ON_DEMAND, ON_DEMAND, STRICT, OFF, OFF_WITH_REDISTRIBUTION)
QUEUES: Final = ("orders", "events")
KINDS: Final = ("red", "blue")
"""Of messages: what selectors choose by."""
DELAYS: Final = (None, 0.0, 0.0, 0.4, 1.0)
SECOND: Final = "2"
"""The name of a node's backup ends so."""
BACKUPS_MAX: Final = 4
"""Larger clusters have none: they have enough to say."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Of a queue."""

    delay: float | None
    """`redistribution-delay`; None: messages stay."""
    matches: bool


@dataclass(frozen=True, slots=True)
class Cast:
    nodes: tuple[str, ...]
    mode: str
    backups: frozenset[str]
    """Nodes that have one."""
    late: frozenset[str]
    """Nodes that are added to a cluster that is there."""
    first_contacts: Mapping[str, str]
    """Of each node: the one that it is told of in its file."""
    attempts: int
    """`notification-attempts`: without any, nothing is said twice."""
    settings: Mapping[tuple[str, str], Settings]
    """Of each queue at each node that has it."""

    def hosts(self) -> tuple[str, ...]:
        return tuple(host for node in self.nodes for host in self.hosts_of(node))

    def hosts_of(self, node: str) -> tuple[str, ...]:
        return (node, node + SECOND) if node in self.backups else (node,)


def cast_of(seed: int) -> Cast:
    random = Random(seed * 104729 + 1)
    nodes = tuple(NAMES[: random.choices(list(SIZES), list(SIZES.values()))[0]])
    is_small = len(nodes) <= BACKUPS_MAX
    return Cast(
        nodes,
        random.choice(MODES),
        frozenset(each for each in nodes if is_small and random.random() < 0.25),
        frozenset(each for each in nodes[2:] if random.random() < 0.3),
        {each: _contact(random, nodes, at) for at, each in enumerate(nodes)},
        random.choice((0, 0, 2)),
        {
            (node, queue): Settings(random.choice(DELAYS), random.random() < 0.3)
            for queue in QUEUES
            for node in _holders(random, nodes)
        },
    )


def _contact(random: Random, nodes: tuple[str, ...], at: int) -> str:
    """One of the first two, which stay."""
    return random.choice(nodes[:2]) if at > 1 else nodes[1 - at]


def _holders(random: Random, nodes: tuple[str, ...]) -> list[str]:
    return random.sample(nodes, random.choice((len(nodes), random.randint(2, len(nodes)))))
