"""Which messages that are published to exchanges here go to other nodes: a decision, and no more.

Each queue that is bound to an exchange, at whatever node, gets its copy of what is published to the
exchange of this name at any node.  So what others have bound becomes bindings here, which lead to
the queue towards that node:

* With the exchange as target, one binding however many queues there have the same: a message
  crosses once, and that node gives each of its queues a copy.
* With the queue as target, a copy for each, where that node cannot tell who gets one: a queue of
  the exchange is balanced and has its turn here, or exchanges here are bound to each other, and a
  queue that several lead to gets one copy.  Or a node leaves with a queue of the exchange
  (`succession.py`): what reaches its heir for other queues must not reach this one there as well.

A balanced queue is one queue, so a binding of it at any node holds at all: it is a binding to the
queue here, whose turns say which node gets the message.  If it is not here, it is a binding to what
stands in for it, which has turns as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from shmbroker.netbridge.cluster.advert import Binding
from shmbroker.netbridge.cluster.adverts import Copy
from shmbroker.netbridge.cluster.balancing import HERE, TURNS
from shmbroker.netbridge.cluster.option import ON_DEMAND, STRICT
from shmbroker.netbridge.cluster.redistribution import Here
from shmbroker.netbridge.election.question import Node

NO_HEIRS: Final[Mapping[Node, Node]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Carried:
    """A binding of the cluster: what it takes goes to a node."""

    exchange: str
    key: str
    arguments: bytes
    matches_any: bool
    to: Node
    """HERE: to the queue itself; TURNS: to a node that has it."""
    queue: str = ""
    """That gets it there; empty: all that are bound to the exchange there."""


class Topics:
    """One look at what there is."""

    def __init__(
        self,
        mode: str,
        here: Sequence[Here],
        bindings: Iterable[Binding],
        there: Mapping[Node, Copy],
        heirs: Mapping[Node, Node] = NO_HEIRS,
        *,
        by_name: bool = False,
        in_turn: Set[str] = frozenset(),
    ) -> None:
        """`bindings`: of this node.  `there`: in the order in which nodes became known; `heirs`: of
        those that leave, or have left; `by_name`: there may be more of them.  `in_turn`: queues
        that more nodes may have than are known."""
        self._mode, self._there, self._heirs = mode, there, heirs
        self._bindings, self._by_name, self._in_turn = tuple(bindings), by_name, in_turn
        self._here = frozenset(each.name for each in here)
        self._holders: dict[str, list[Node]] = {}
        self._holders.update({each.name: [HERE] for each in here if each.may_be_balanced})
        for node, copy in there.items():
            for name, each in copy.queues.items():
                if each.may_be_balanced:
                    self._holders.setdefault(name, []).append(node)
        self._chained = {each.exchange for each in self._bindings if each.is_to_exchange}
        self._chained |= {each.destination for each in self._bindings if each.is_to_exchange}

    def carried(self, exchanges: Mapping[str, str]) -> frozenset[Carried]:
        """`exchanges`: of this node, their kinds by name."""
        ours: dict[str, list[Binding]] = {}
        theirs: dict[str, list[tuple[Node, Binding]]] = {}
        for own in self._bindings:
            if not own.is_to_exchange:
                ours.setdefault(own.exchange, []).append(own)
        for node, copy in self._there.items():
            for each in copy.bindings - self._told_by_heir(node):
                if not each.is_to_exchange and exchanges.get(each.exchange) == each.kind:
                    theirs.setdefault(each.exchange, []).append((node, each))
        return frozenset(
            carried
            for exchange, wanted in theirs.items()
            for carried in self._of(exchange, wanted, ours.get(exchange, []))
        )

    def _told_by_heir(self, node: Node) -> Set[Binding]:
        heir = self._heirs.get(node)
        if heir is None:
            return frozenset()
        there = self._there.get(heir)
        return frozenset(self._bindings) if heir == HERE else there.bindings if there else set()

    def _of(
        self, exchange: str, theirs: Sequence[tuple[Node, Binding]], ours: Sequence[Binding]
    ) -> Iterator[Carried]:
        bound = {each.destination for _, each in theirs} | {each.destination for each in ours}
        singly = {node for name in bound if self._is_one(name) for node in self._holders[name]}
        is_leaving = self._by_name or any(node in self._heirs for node, _ in theirs)
        known = {(each.destination, *_taken(each)) for each in ours}
        for node, each in theirs:
            name = each.destination
            if self._is_one(name):
                if self._holders[name][0] != HERE:
                    yield Carried(exchange, *_taken(each), TURNS, name)
                elif (name, *_taken(each)) not in known:
                    yield Carried(exchange, *_taken(each), HERE, name)
            elif self._heirs.get(node) == HERE and name in self._here:
                yield Carried(exchange, *_taken(each), HERE, name)
            else:
                is_single = is_leaving or node in singly or exchange in self._chained
                yield Carried(exchange, *_taken(each), node, name if is_single else "")

    def _is_one(self, queue: str) -> bool:
        """Several nodes have it, and each message goes to one of them."""
        least = 1 if queue in self._in_turn else 2
        return self._mode in (STRICT, ON_DEMAND) and len(self._holders.get(queue, ())) >= least


def _taken(binding: Binding) -> tuple[str, bytes, bool]:
    """Of what: key and arguments."""
    return binding.key, binding.arguments, binding.matches_any
