"""Where groups go that are published at this node: asked of the arbiter, and remembered.

A group that is not known is proposed, until the arbiter has accepted a node for it.  What is known
needs no arbiter, and is proposed again when there is one anew, and as long as it is used: so the
arbiter knows that it is, and one that had to forget learns it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shmbroker.netbridge.cluster.group import (
    Action,
    Gone,
    Group,
    Holder,
    Routed,
    Tell,
    TimedOut,
    Unrouted,
    turns,
)
from shmbroker.netbridge.cluster.said import Decides, Ends, Proposes
from shmbroker.netbridge.election.question import Node

NEVER: Final = float("inf")
AGAIN_SECONDS: Final = 0.2
"""Until it is proposed again to an arbiter that has not answered: it knows of nobody yet."""
TOGETHER: Final = 64
"""Routes that are proposed again before the first of them is answered."""

USES_TOLD: Final = 4
"""So often a route that is used is told in the time after which an unused one is forgotten."""

Actions = Iterator[Action]
Holders = Mapping[str, Sequence[Holder]]
"""Of each queue, in the order in which nodes became known; this one is the first."""


@dataclass(slots=True)
class _Wanted:
    ends: float
    again: float
    better: Node = b""
    """What the arbiter has said; empty: it is ours to choose."""


@dataclass(slots=True)
class _Route:
    node: Node
    used: float
    told: float
    """When the arbiter knew of it last."""


class Proposer:
    def __init__(
        self,
        me: Node,
        mode: str,
        timeout: float,
        group_timeout: float | None,
        reaper_period: float,
        known: Mapping[Group, Node],
        now: float,
    ) -> None:
        """`known`: routes of a former broker of this node."""
        self.proposals = self.rejections = self.timeouts = 0
        self._me, self._mode, self._timeout = me, mode, timeout
        self._group_timeout = group_timeout
        # the arbiter hears of a use before it would forget the group
        self._reaper_period = min(reaper_period, (group_timeout or NEVER) / USES_TOLD)
        self._reaps_at = now + self._reaper_period
        self._holders: Holders = {}
        self._gone: Gone = {}
        self._arbiter: Node | None = None
        self._routes = {group: _Route(node, now, now) for group, node in known.items()}
        self._wanted: dict[Group, _Wanted] = {}
        self._again: deque[Group] = deque()
        """Routes that the arbiter is to be told of."""
        self._asked: set[Group] = set()
        """Those of them that it has not answered."""
        self._asks_on = NEVER
        self._turns: dict[str, int] = {}

    @property
    def routes(self) -> Mapping[Group, Node]:
        return {group: each.node for group, each in self._routes.items()}

    @property
    def waiting(self) -> int:
        """Groups that are wanted, and have no route yet."""
        return len(self._wanted)

    @property
    def by_node(self) -> Counter[Node]:
        """How many groups go to each."""
        return Counter(each.node for each in self._routes.values())

    # --- of this node -------------------------------------------------------------------------

    def wants(self, group: Group, now: float) -> Actions:
        """Somebody publishes; `Routed` or `TimedOut` follows."""
        route = self._routes.get(group)
        if route is not None:
            route.used = now
            yield Routed(group, route.node)
        elif group not in self._wanted:
            self._wanted[group] = _Wanted(now + self._timeout, now)
            yield from self._propose(group, now)

    def used(self, group: Group, now: float) -> None:
        """By somebody who knows its route."""
        if (route := self._routes.get(group)) is not None:
            route.used = now

    def looks(self, holders: Holders, gone: Gone) -> Actions:
        self._holders, self._gone = holders, gone
        for group, route in [each for each in self._routes.items() if each[1].node in gone]:
            heir = gone[route.node]
            if heir is None:
                yield from self._leave(group)
            else:
                route.node = heir
                yield Routed(group, heir)
        for wanted in self._wanted.values():
            if wanted.better in gone:
                wanted.better = gone[wanted.better] or b""

    def holders_of(self, queue: str) -> Sequence[Holder]:
        return self._holders.get(queue, ())

    # --- of the arbiter -----------------------------------------------------------------------

    def asks(self, arbiter: Node | None, now: float) -> Actions:
        """Who decides from now on, and can be asked; also if it is there anew.  None: nobody."""
        self._arbiter = arbiter
        self._again.clear()
        self._asked.clear()
        self._asks_on = NEVER
        if arbiter is None:
            return
        for group, wanted in self._wanted.items():
            wanted.better = b""
            yield from self._propose(group, now)
        self._again.extend(self._routes)
        yield from self._tell_again(now)

    def decided(self, what: Decides, now: float) -> Actions:
        group = Group(what.queue, what.group)
        route, wanted = self._routes.get(group), self._wanted.get(group)
        node = self._gone.get(what.node) or what.node  # the arbiter may not know it yet
        self._asked.discard(group)
        if what.is_accepted:
            self._wanted.pop(group, None)
            if route is None or route.node != node:
                self._routes[group] = _Route(node, now, now)
                yield Routed(group, node)
            else:
                route.told = now
        else:
            self.rejections += 1
            if route is not None and route.node != node:
                yield from self._leave(group)  # whoever publishes next asks
            if wanted is not None:
                wanted.better = what.node
                yield from self._propose(group, now)
        yield from self._tell_again(now)

    def ended(self, what: Ends) -> Actions:
        group = Group(what.queue, what.group)
        route = self._routes.get(group)
        if route is not None and route.node == what.node:
            yield from self._leave(group)

    # --- time ---------------------------------------------------------------------------------

    def tick(self, now: float) -> Actions:
        for group, wanted in list(self._wanted.items()):
            if now >= wanted.ends:
                del self._wanted[group]
                self.timeouts += 1
                yield TimedOut(group)
            elif now >= wanted.again:
                yield from self._propose(group, now)
        if now >= self._asks_on:
            self._asked.clear()  # it knows of nobody who could have these
            yield from self._tell_again(now)
        if now >= self._reaps_at:
            self._reaps_at = now + self._reaper_period
            yield from self._reap(now)

    def _reap(self, now: float) -> Actions:
        if self._group_timeout is None:
            return
        waits = {*self._again, *self._asked}
        for group, route in list(self._routes.items()):
            if route.used + self._group_timeout <= now:
                yield from self._leave(group)
            elif route.used > route.told and group not in waits:
                self._again.append(group)
        yield from self._tell_again(now)

    @property
    def deadline(self) -> float:
        wanted = [min(each.ends, each.again) for each in self._wanted.values()]
        reaps = NEVER if self._group_timeout is None else self._reaps_at
        return min([*wanted, self._asks_on, reaps])

    # --- proposals ----------------------------------------------------------------------------

    def _propose(self, group: Group, now: float) -> Actions:
        """Once more in a while, if there is no answer, or nobody to propose or to ask."""
        wanted = self._wanted[group]
        wanted.again = now + AGAIN_SECONDS
        node = wanted.better or self._chosen(group.queue)
        if self._arbiter is not None and node:
            self.proposals += 1
            yield Tell(self._arbiter, Proposes(group.queue, group.name, node, False))

    def _chosen(self, queue: str) -> Node:
        """As a message without a group is balanced; empty: nobody has it."""
        holders = self.holders_of(queue)
        may = turns(self._mode, holders)
        if may:
            turn = self._turns.get(queue, 0)
            self._turns[queue] = turn + 1
            return may[turn % len(may)]
        return holders[0].node if holders else b""

    def _tell_again(self, now: float) -> Actions:
        while self._arbiter is not None and self._again and len(self._asked) < TOGETHER:
            group = self._again.popleft()
            route = self._routes.get(group)
            if route is not None:
                self._asked.add(group)
                self.proposals += 1
                yield Tell(self._arbiter, Proposes(group.queue, group.name, route.node, True))
        self._asks_on = now + AGAIN_SECONDS if self._again else NEVER

    def _leave(self, group: Group) -> Actions:
        del self._routes[group]
        self._asked.discard(group)
        yield Unrouted(group)
