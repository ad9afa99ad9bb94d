"""Groups whose node was scaled down, as long as messages of them are on their way to it.

What is on that way goes to the node's successor, and what is published goes by it as well: so all
of it has one order.  Once nothing is there any more, or the node is back, nothing new goes by it.
Then the way becomes empty, and the group goes straight to the successor.  A program that has read
the route, and has not published yet, has some time for that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from shmbroker.netbridge.cluster.group import Group
from shmbroker.netbridge.election.question import Node

NEVER: Final = float("inf")
UNDECIDED: Final = b""
IDLE_SECONDS: Final = 1.0
"""Without a message on the way, until nothing new goes by it."""
SETTLE_SECONDS: Final = 0.1
"""From then on, until it is believed to be empty."""
LOOK_SECONDS: Final = 0.05
HEAR_SECONDS: Final = 3.0
"""Of a node that has a route no more it may be heard so much later that it was scaled down."""


@dataclass(slots=True)
class _Way:
    begun: float
    groups: dict[Group, Node] = field(default_factory=dict)
    """Where each is to go."""
    idle_since: float = 0.0
    has_gone: bool = False
    """It was scaled down; else that may be heard yet."""
    stopped: float | None = None
    """When nothing new went by it any more."""


class Behind:
    def __init__(self, is_empty: Callable[[Node], bool]) -> None:
        """`is_empty`: whether all that was sent to a node has arrived."""
        self._is_empty = is_empty
        self._gone: frozenset[Node] = frozenset()
        self._ways: dict[Node, _Way] = {}
        self._looks_at = NEVER

    @property
    def deadline(self) -> float:
        return self._looks_at

    def looks(self, gone: Collection[Node]) -> None:
        """`gone`: nodes that were scaled down, and are not back."""
        self._gone = frozenset(gone)
        for node in self._ways.keys() & self._gone:
            self._ways[node].has_gone = True
        if self._ways.keys() - self._gone:
            self._looks_at = 0.0

    def goes(self, group: Group, former: Node, node: Node, now: float) -> bool:
        """From the former node to that one: whether it does so later.

        That the former one has gone may be heard after this: then something is on its way there.
        """
        for way in self._ways.values():
            if group in way.groups:
                way.groups[group] = node
                return True
        if former == node or (former not in self._gone and self._is_empty(former)):
            return False
        way = self._way(former, now)
        way.groups[group] = node
        if way.stopped is not None:  # this one is not stopped yet
            way.stopped, way.idle_since = None, now
        self._looks_at = min(self._looks_at, now + LOOK_SECONDS)
        return True

    def ends(self, group: Group, former: Node, now: float) -> None:
        """It has no route any more; the next one waits for what is on its way by this one."""
        for way in self._ways.values():
            way.groups.pop(group, None)
        if former and not self._is_empty(former):
            self._way(former, now).groups[group] = UNDECIDED
            self._looks_at = min(self._looks_at, now + LOOK_SECONDS)

    def _way(self, former: Node, now: float) -> _Way:
        return self._ways.setdefault(
            former, _Way(now, idle_since=now, has_gone=former in self._gone)
        )

    def stops(self, now: float) -> Iterator[Group]:
        """Nothing new is to go by these any more."""
        if now < self._looks_at:
            return
        for node, way in self._ways.items():
            if not self._is_empty(node):
                way.idle_since = now
            is_idle = now >= way.idle_since + IDLE_SECONDS
            if way.stopped is None and (is_idle or node not in self._gone):
                way.stopped = now
                yield from way.groups

    def free(self, now: float) -> Iterator[tuple[Group, Node]]:
        """These go where they are to go, from now on."""
        if now < self._looks_at:
            return
        for node, way in list(self._ways.items()):
            has_settled = way.stopped is not None and now >= way.stopped + SETTLE_SECONDS
            is_other = not way.has_gone and now >= way.begun + HEAR_SECONDS
            if is_other or (has_settled and self._is_empty(node)):
                del self._ways[node]
                yield from ((group, to) for group, to in way.groups.items() if to != UNDECIDED)
        self._looks_at = now + LOOK_SECONDS if self._ways else NEVER
