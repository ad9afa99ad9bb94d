"""Bindings of nodes that leave, or have left, and who has what they have had: a decision, no more.

A node that leaves tells of its bindings until it has left.  Its heir has its queues at once, and
binds them when all messages are there.  So each of these bindings counts, as one of the node that
leaves, until the heir has told that it has the same: what is published until then goes by the way
to the node that leaves, which leads to the heir in the end.  A node that hears first that one has
left, and later what its heir has bound, has no moment in which a queue is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Final

from shmbroker.netbridge.cluster.advert import Advert, Binding
from shmbroker.netbridge.cluster.adverts import Copy
from shmbroker.netbridge.cluster.balancing import HERE
from shmbroker.netbridge.cluster.machine import Membership
from shmbroker.netbridge.election.question import Node

NEVER: Final = float("inf")
KEPT_SECONDS: Final = 10.0
"""So long after a node has left its heir may be silent: what is not bound by then never will be."""


@dataclass(frozen=True, slots=True)
class Leaver:
    heir: Node
    """HERE: this node."""
    copy: Copy
    """Of what it has told."""


class Succession:
    def __init__(self) -> None:
        self._former: dict[Node, Set[Binding]] = {}
        """What each has told last."""
        self._left_at: dict[Node, float] = {}
        self._unheard: dict[Node, float] = {}
        self.waits = False
        """A node leaves, and it or its heir was not heard since this one was started: what one has
        bound may be of the other, and lead there already.  So all stays as it is until then."""
        self.is_new = True
        """This one was started a moment ago: a node of which it has not heard yet may leave."""
        self._began = NEVER
        self.deadline = NEVER

    def looks(
        self, machine: Membership, copies: Mapping[Node, Copy], own: Iterable[Advert], now: float
    ) -> dict[Node, Leaver]:
        """`copies`: of lives, as far as they were read; `own`: what this node has told."""
        self._former |= {node: copy.bindings for node, copy in copies.items()}
        found = {
            node: self._leaver(node, live.heir, machine, copies)
            for node, live in machine.lives.items()
            if live.heir and node in self._former
        }
        for node in (machine.left.keys() & self._former.keys()) - machine.lives.keys():
            since = self._left_at.setdefault(node, now)
            heir = machine.heir(node)
            if heir is not None and now < since + KEPT_SECONDS:
                leaver = self._leaver(node, heir, machine, copies)
                if self._lacks(leaver, copies, own):
                    found[node] = leaver
        kept = found.keys() | copies.keys()
        self._former = {node: known for node, known in self._former.items() if node in kept}
        self._left_at = {node: at for node, at in self._left_at.items() if node in found}
        ours = machine.me.node if machine.me is not None else b""
        needed = {each for node, live in machine.lives.items() if live.heir
                  for each in (node, live.heir)}  # fmt: skip
        unheard = needed - self._former.keys() - {ours}
        self._unheard = {node: self._unheard.get(node, now) for node in unheard}
        self._began = min(self._began, now)
        self.is_new = now < self._began + KEPT_SECONDS
        ends = [self._began + KEPT_SECONDS]
        ends += [each + KEPT_SECONDS for each in (*self._left_at.values(), *self._unheard.values())]
        self.deadline = min((each for each in ends if now < each), default=NEVER)
        self.waits = any(now < each + KEPT_SECONDS for each in self._unheard.values())
        return found

    def _leaver(
        self, node: Node, heir: Node, machine: Membership, copies: Mapping[Node, Copy]
    ) -> Leaver:
        """Of one that is not there any more only the bindings count."""
        is_ours = machine.me is not None and heir == machine.me.node
        copy = copies.get(node) or Copy({}, set(self._former[node]))
        return Leaver(HERE if is_ours else heir, copy)

    def _lacks(self, of: Leaver, copies: Mapping[Node, Copy], own: Iterable[Advert]) -> bool:
        """Its heir has not told all of these bindings."""
        if of.heir == HERE:
            return not of.copy.bindings <= {each for each in own if isinstance(each, Binding)}
        there = copies.get(of.heir)
        return there is None or not of.copy.bindings <= there.bindings
