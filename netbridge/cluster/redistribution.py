"""What waits where nobody consumes, and may go to another node: a decision, and no more.

A queue here may give its messages away when its last consumer left so long ago, and another node
has a consumer of a queue of that name.  Whoever comes here in time cancels that, and whoever comes
in the middle of it ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from shmbroker.netbridge.cluster.advert import Queue
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


@dataclass(frozen=True, slots=True)
class Gives:
    """The messages of this queue go to these nodes, in turn."""

    queue: str
    to: tuple[Node, ...]
    whose: str = ""
    """The queue there; empty: that of the same name."""


class Redistribution:
    def __init__(self) -> None:
        self._alone_since: dict[str, float] = {}
        """Since when nobody here consumes, of queues that are to give their messages away."""
        self.deadline = NEVER
        """When one may begin that has to wait now, if nothing changes."""

    def looks(
        self, here: Iterable[Here], there: Mapping[Node, Iterable[Queue]], now: float
    ) -> list[Gives]:
        """`there`: what is behind links that are up, in the order in which nodes became known."""
        consumed: dict[str, list[Node]] = {}
        for node, queues in there.items():
            for queue in queues:
                if queue.is_consumed:
                    consumed.setdefault(queue.name, []).append(node)
        waiting = {each.name: each for each in here
                   if each.delay is not None and not each.is_consumed}  # fmt: skip
        self._alone_since = {name: self._alone_since.get(name, now) for name in waiting}
        self.deadline = NEVER
        gives = []
        for name, each in waiting.items():
            if name not in consumed:
                continue
            assert each.delay is not None
            begins = self._alone_since[name] + each.delay
            if begins <= now:
                gives.append(Gives(name, tuple(consumed[name])))
            else:
                self.deadline = min(self.deadline, begins)
        return gives
