"""What waits where nobody consumes, and may go to another node: a decision, and no more.

A queue here may give its messages away when its last consumer left so long ago, and another node
has a consumer of a queue of that name.  Whoever comes here in time cancels that, and whoever comes
in the middle of it ends it.  With `redistribution-filters = "match"` consumers here that select
keep only what their selectors match, so it is so long since these last changed.

A consumer elsewhere that selects gets only what its selector matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from shmbroker.netbridge.cluster.advert import SELECTORS_MAX, Queue
from shmbroker.netbridge.election.question import Node

NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True)
class Here:
    """A queue of this broker."""

    name: str
    is_consumed: bool
    delay: float | None
    """`redistribution-delay`; None: its messages stay."""
    reference: int = 0
    """Another one if it was deleted and made again."""
    may_be_balanced: bool = True
    """Nothing of it, as groups or last values, needs all of its messages in one place."""
    has_groups: bool = False
    """Its messages stay where their groups go, if a grouping handler says so."""
    selectors: tuple[str, ...] = ()
    """Of its consumers, if all that is taken is what one of these matches."""
    matches: bool = False
    """`redistribution-filters = "match"`."""

    @property
    def gives(self) -> bool:
        """Not with more selectors than others are told of: to them all is taken here.  Else of two
        such nodes each would give the other what it has from it."""
        return self.delay is not None and (
            not self.is_consumed or (self.matches and 0 < len(self.selectors) <= SELECTORS_MAX)
        )


@dataclass(frozen=True, slots=True)
class To:
    """A node that takes messages of a queue."""

    node: Node
    selectors: tuple[str, ...] = ()
    """What one of these matches; without any, all."""


@dataclass(frozen=True, slots=True)
class Gives:
    """The messages of this queue go to these nodes, in turn."""

    queue: str
    to: tuple[To, ...]
    whose: str = ""
    """The queue there; empty: that of the same name."""
    unless: tuple[str, ...] | None = None
    """Not what selectors of consumers here match; None: not if there is any consumer here."""
    rest: Node | None = None
    """Who gets what none of them takes."""


class Redistribution:
    def __init__(self) -> None:
        self._since: dict[str, tuple[int, tuple[str, ...], float]] = {}
        """Of queues that are to give messages away: which one it is, the selectors here, and since
        when."""
        self.deadline = NEVER
        """When one may begin that has to wait now, if nothing changes."""

    def looks(
        self, here: Iterable[Here], there: Mapping[Node, Iterable[Queue]], now: float
    ) -> list[Gives]:
        """`there`: what is behind links that are up, in the order in which nodes became known."""
        waiting = {each.name: each for each in here if each.gives}
        self._since = {name: self._as_since(each, now) for name, each in waiting.items()}
        self.deadline = NEVER
        consumed: dict[str, list[To]] = {}
        for node, queues in there.items() if waiting else ():
            for queue in queues:
                if queue.is_consumed:
                    consumed.setdefault(queue.name, []).append(To(node, queue.selectors))
        gives = []
        for name, each in waiting.items():
            if name not in consumed:
                continue
            assert each.delay is not None
            begins = self._since[name][2] + each.delay
            if begins <= now:
                unless = each.selectors if each.matches else None
                gives.append(Gives(name, _takers(each, consumed[name]), unless=unless))
            else:
                self.deadline = min(self.deadline, begins)
        return gives

    def _as_since(self, queue: Here, now: float) -> tuple[int, tuple[str, ...], float]:
        known = self._since.get(queue.name)
        which = queue.reference, queue.selectors
        return (*which, now) if known is None or known[:2] != which else known


def _takers(queue: Here, there: list[To]) -> tuple[To, ...]:
    """Members of a group keep their order: one node gets all, if there is one that takes all."""
    whole = tuple(each for each in there if not each.selectors)
    return whole[:1] if queue.has_groups and whole else tuple(there)
