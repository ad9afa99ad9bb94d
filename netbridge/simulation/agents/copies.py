"""Where a message is to be, and how often: what docs/agents.md says, for a network without faults.

A broker has a message once by each way that leads to it without passing a broker twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from shmbroker.netbridge.agent.option import Mode
from shmbroker.netbridge.simulation.agents.cast import Cast
from shmbroker.netbridge.simulation.agents.routing import FORWARDS_ELSE, Binding

Bound = Mapping[str, frozenset[Binding]]
"""By nodes."""


@dataclass(slots=True)
class Copies:
    cast: Cast
    bound: Bound
    has_links: bool
    """False: what is subscribed to need not come, since a link may be down."""
    found: Counter[tuple[str, str]]

    def published(self, key: str, node: str) -> None:
        both = [each for each in self.cast.of(node) if each.mode is Mode.BOTH]
        for each in both:
            self._comes(key, each.to, (node,), back_to=node)
        if not both:
            self._spreads(key, node, ())

    def _comes(self, key: str, node: str, been: tuple[str, ...], back_to: str = "") -> None:
        """`been`: brokers that had it, or sent it; `back_to`: who sent it, and has not got it."""
        if node not in been:
            self._spreads(key, node, been, back_to)

    def _spreads(self, key: str, node: str, been: tuple[str, ...], back_to: str = "") -> None:
        taking = [each for each in self.bound[node] if each.takes(key)]
        exclusive = any(each.is_exclusive for each in taking)
        queues = {each.queue for each in taking if each.is_exclusive or not exclusive}
        self.found.update((node, queue) for queue in queues)
        hops = len(been)
        subscribers = [] if exclusive else [
            each for each in self.cast.agents
            if each.to == node and each.mode.subscribes and self._wants(key, each.at, each.mode)
        ]  # fmt: skip
        for each in subscribers if self.has_links else ():
            if hops == 0 or hops < each.hops:
                without = tuple(other for other in been if other != back_to)
                self._comes(key, each.at, (*without, node))
        for each in self.cast.of(node):
            is_else = each.mode in FORWARDS_ELSE and not queues and not subscribers
            if (each.mode is Mode.FORWARD_ALL or is_else) and (hops == 0 or hops < each.hops):
                self._comes(key, each.to, (*been, node))

    def _wants(self, key: str, node: str, mode: Mode) -> bool:
        is_of_all = mode is not Mode.SERVICE
        return any(
            each.takes(key) and (is_of_all or each.is_exclusive) for each in self.bound[node]
        )


def copies(
    cast: Cast, bound: Bound, node: str, key: str, *, has_links: bool
) -> Counter[tuple[str, str]]:
    """Of what is published with this key at a node: by nodes and their queues."""
    found = Copies(cast, bound, has_links, Counter())
    found.published(key, node)
    return found.found


