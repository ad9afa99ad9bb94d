"""The arbiter of a cluster's groups: one node decides for all to which node each group goes.

The first proposal for a group is accepted, or a better node is answered, which is then proposed.
What was accepted is made durable before anybody hears of it, and it stays: whoever proposes another
node later is told that one.  So all send a group to one queue, also after the arbiter's death.

A route ends when its queue is deleted, its node is forgotten, or nobody has used it for so long.
One to a node that was scaled down leads to whoever has its messages.
That a queue is deleted is known from what its node tells of its queues, which is a bit older than a
proposal may be: so only a queue that was seen there may be missed, or one that has not come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from shmbroker.netbridge.cluster.group import (
    Action,
    Drop,
    Gone,
    Group,
    Holder,
    Keep,
    Tell,
    TellAll,
    turns,
)
from shmbroker.netbridge.cluster.proposer import USES_TOLD
from shmbroker.netbridge.cluster.said import Decides, Ends, Proposes
from shmbroker.netbridge.election.question import Node

NEVER: Final = float("inf")
UNSEEN_SECONDS: Final = 10.0
"""Until a queue that was proposed has to be there."""

Actions = Iterator[Action]
Queues = Mapping[Node, Collection[str]]
"""Of each node that has told all of its queues."""


@dataclass(slots=True)
class _Route:
    node: Node
    used: float
    number: int = 0
    """0: it is durable."""
    asked: dict[Node, Node] = field(default_factory=dict)
    """Who waits for that, and what each has proposed."""


@dataclass(slots=True)
class _Place:
    """A queue at a node."""

    since: float
    was_seen: bool
    groups: set[Group] = field(default_factory=set)


class Arbiter:
    def __init__(
        self,
        mode: str,
        group_timeout: float | None,
        reaper_period: float,
        kept: Mapping[Group, Node],
        now: float,
    ) -> None:
        """`kept`: the routes that are durable."""
        self.proposals = self.rejections = 0
        self._mode, self._group_timeout = mode, group_timeout
        self._reaper_period, self._reaps_at = reaper_period, now + reaper_period
        self._routes: dict[Group, _Route] = {}
        self._places: dict[tuple[Node, str], _Place] = {}
        self._numbers = count(1)
        self._turns: dict[str, int] = {}
        self._nodes: frozenset[Node] = frozenset()
        self._queues: Queues = {}
        for group, node in kept.items():
            self._add(group, _Route(node, now), was_seen=True)

    @property
    def routes(self) -> Iterator[tuple[Group, Node, float]]:
        """The durable ones, and when each was used last."""
        return (
            (group, each.node, each.used)
            for group, each in self._routes.items()
            if not each.number
        )  # fmt: skip

    @property
    def by_node(self) -> Counter[Node]:
        """How many groups go to each."""
        found: Counter[Node] = Counter()
        for (node, _), place in self._places.items():
            found[node] += len(place.groups)
        return found

    # --- what happens -------------------------------------------------------------------------

    def proposed(self, by: Node, what: Proposes, holders: Sequence[Holder], now: float) -> Actions:
        """`holders`: those that are known to have the queue."""
        self.proposals += 1
        group = Group(what.queue, what.group)
        route = self._routes.get(group)
        if route is None:
            if not self._is_good(what, holders):
                yield from self._better(by, what, holders)
                return
            route = _Route(what.node, now, next(self._numbers))
            self._add(group, route, was_seen=self._is_seen(what.node, what.queue))
            yield Keep(route.number, group, what.node)
        route.used = now
        if route.number:
            route.asked[by] = what.node
        else:
            yield self._answer(by, group, route, what.node)

    def kept(self, number: int, group: Group) -> Actions:
        """This route is durable; it may have ended since."""
        route = self._routes.get(group)
        if route is None or route.number != number:
            return
        route.number = 0
        for by, proposed in route.asked.items():
            yield self._answer(by, group, route, proposed)
        route.asked.clear()

    def not_kept(self, number: int, group: Group) -> None:
        """There is no room for it: whoever proposes it again begins anew."""
        route = self._routes.get(group)
        if route is not None and route.number == number:
            self._forget(group)

    def looks(self, nodes: Collection[Node], gone: Gone, queues: Queues, now: float) -> Actions:
        """`nodes`: all that there are, also those that are missing."""
        self._nodes, self._queues = frozenset(nodes), queues
        for place in [each for each in self._places if each[0] in gone]:
            heir = gone[place[0]]
            yield from self._end_all(place) if heir is None else self._inherit(place, heir, now)
        yield from self._miss(now)

    def tick(self, now: float) -> Actions:
        yield from self._miss(now)
        if now < self._reaps_at:
            return
        self._reaps_at = now + self._reaper_period
        if self._group_timeout is not None:
            # a program and a proposer each tell of a use up to so much later: not before its time
            unused = now - self._group_timeout * (1 + 2 / USES_TOLD)
            for group in [each for each, at in self._routes.items() if at.used <= unused]:
                yield from self._end(group)

    @property
    def deadline(self) -> float:
        unseen = [each.since + UNSEEN_SECONDS for (node, _), each in self._places.items()
                  if not each.was_seen and node in self._queues]  # fmt: skip
        reaps = NEVER if self._group_timeout is None else self._reaps_at
        return min([reaps, *unseen])

    # --- decisions ----------------------------------------------------------------------------

    def _is_good(self, what: Proposes, holders: Sequence[Holder]) -> bool:
        """What is in use stays where it is, as long as that can be."""
        if what.node not in self._nodes:
            return False
        if what.is_used:
            return what.node not in self._queues or self._is_seen(what.node, what.queue)
        may = turns(self._mode, holders)
        return not may or what.node in may

    def _better(self, by: Node, what: Proposes, holders: Sequence[Holder]) -> Actions:
        may = turns(self._mode, holders)
        may = may or tuple(each.node for each in holders if each.node in self._nodes)
        if not may:  # it is proposed again until there is somebody
            if what.is_used:
                yield Tell(by, Ends(what.queue, what.group, what.node))
            return
        turn = self._turns.get(what.queue, 0)
        self._turns[what.queue] = turn + 1
        self.rejections += 1
        yield Tell(by, Decides(what.queue, what.group, may[turn % len(may)], False))

    def _answer(self, by: Node, group: Group, route: _Route, proposed: Node) -> Tell:
        is_accepted = proposed == route.node
        self.rejections += not is_accepted
        return Tell(by, Decides(group.queue, group.name, route.node, is_accepted))

    # --- routes -------------------------------------------------------------------------------

    def _is_seen(self, node: Node, queue: str) -> bool:
        return queue in self._queues.get(node, ())

    def _add(self, group: Group, route: _Route, *, was_seen: bool) -> None:
        self._routes[group] = route
        place = self._places.setdefault(
            (route.node, group.queue), _Place(route.used, was_seen=was_seen)
        )
        place.groups.add(group)

    def _miss(self, now: float) -> Actions:
        """Queues that are not there any more."""
        for place, each in list(self._places.items()):
            node, queue = place
            if node not in self._queues:
                continue
            if self._is_seen(node, queue):
                each.was_seen = True
            elif each.was_seen or now >= each.since + UNSEEN_SECONDS:
                yield from self._end_all(place)

    def _inherit(self, place: tuple[Node, str], heir: Node, now: float) -> Actions:
        """Its messages are there; whoever sends groups to it knows that as well."""
        for group in self._places.pop(place).groups:
            former = self._routes[group]
            route = _Route(heir, max(former.used, now), next(self._numbers), former.asked)
            self._add(group, route, was_seen=self._is_seen(heir, group.queue))
            yield Keep(route.number, group, heir, is_in_use=True)

    def _end_all(self, place: tuple[Node, str]) -> Actions:
        for group in list(self._places[place].groups):
            yield from self._end(group)

    def _end(self, group: Group) -> Actions:
        route = self._forget(group)
        yield Drop(group)
        yield TellAll(Ends(group.queue, group.name, route.node))

    def _forget(self, group: Group) -> _Route:
        route = self._routes.pop(group)
        place = self._places[route.node, group.queue]
        place.groups.discard(group)
        if not place.groups:
            del self._places[route.node, group.queue]
        return route
