"""Where an exchange's message goes at one broker: a model of `core/route.py`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from shmbroker.netbridge.agent.option import Mode
from shmbroker.netbridge.agent.said import Wanted
from shmbroker.netbridge.link.held import Held
from shmbroker.netbridge.simulation.agents.cast import EVERY, Agent
from shmbroker.netbridge.simulation.peers.store import Ring

FORWARDS_ELSE: Final = frozenset({Mode.FORWARD_ELSE, Mode.SERVICE})


class Binding(NamedTuple):
    queue: str
    key: str
    is_exclusive: bool = False

    def takes(self, key: str) -> bool:
        return self.key in (EVERY, key)


@dataclass(slots=True, eq=False)
class Subscription:
    """The private queue of another broker's agent, in shared memory only."""

    node: str
    hops: int
    wanted: frozenset[Wanted]
    ring: Ring
    held: Held

    def takes(self, key: str) -> bool:
        return any(each.key in (EVERY, key) for each in self.wanted)


@dataclass(frozen=True, slots=True)
class Route:
    queues: frozenset[str]
    subscriptions: tuple[Subscription, ...]
    agents: tuple[Agent, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.queues or self.subscriptions or self.agents)


def route(
    key: str,
    bindings: Iterable[Binding],
    subscriptions: Iterable[Subscription],
    agents: Iterable[Agent],
    *,
    has_arrived: bool,
) -> Route:
    """`has_arrived`: an agent of another broker has brought it."""
    alone = tuple(each for each in agents if each.mode is Mode.BOTH)
    if alone and not has_arrived:
        return Route(frozenset(), (), alone)
    taking = [each for each in bindings if each.takes(key)]
    exclusive = [each for each in taking if each.is_exclusive]
    queues = frozenset(each.queue for each in exclusive or taking)
    private = () if exclusive else tuple(each for each in subscriptions if each.takes(key))
    is_taken = bool(queues or private)
    onward = tuple(
        each for each in agents
        if each.mode is Mode.FORWARD_ALL or (each.mode in FORWARDS_ELSE and not is_taken)
    )  # fmt: skip
    return Route(queues, private, onward)
