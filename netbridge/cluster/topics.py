"""Which messages that are published to exchanges here go to other nodes: a decision, and no more.

Each queue that is bound to an exchange, at whatever node, gets its copy of what is published to the
exchange of this name at any node.  So what others have bound becomes bindings here, which lead to
the queue towards that node:

* With the exchange as target, one binding however many queues there have the same: a message
  crosses once, and that node gives each of its queues a copy.
* With the queue as target, a copy for each, where that node cannot tell who gets one: a queue of
  the exchange is balanced and has its turn here, or exchanges here are bound to each other, and a
  queue that several lead to gets one copy.

A balanced queue is one queue, so a binding of it at any node holds at all: it is a binding to the
queue here, whose turns say which node gets the message.  If it is not here, it is a binding to what
stands in for it, which has turns as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shmbroker.netbridge.cluster.advert import Binding
from shmbroker.netbridge.cluster.adverts import Copy
from shmbroker.netbridge.cluster.balancing import HERE, TURNS
from shmbroker.netbridge.cluster.option import ON_DEMAND, STRICT
from shmbroker.netbridge.cluster.redistribution import Here
from shmbroker.netbridge.election.question import Node


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
        here: Iterable[Here],
        bindings: Iterable[Binding],
        there: Mapping[Node, Copy],
    ) -> None:
        """`bindings`: of this node.  `there`: in the order in which nodes became known."""
        self._mode, self._there = mode, there
        self._bindings = tuple(bindings)
        self._holders: dict[str, list[Node]] = {}
        for queue in here:
            if queue.may_be_balanced:
                self._holders[queue.name] = [HERE]
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
            for each in copy.bindings:
                if not each.is_to_exchange and exchanges.get(each.exchange) == each.kind:
                    theirs.setdefault(each.exchange, []).append((node, each))
        return frozenset(
            carried
            for exchange, wanted in theirs.items()
            for carried in self._of(exchange, wanted, ours.get(exchange, []))
        )

    def _of(
        self, exchange: str, theirs: Sequence[tuple[Node, Binding]], ours: Sequence[Binding]
    ) -> Iterator[Carried]:
        bound = {each.destination for _, each in theirs} | {each.destination for each in ours}
        singly = {node for name in bound if self._is_one(name) for node in self._holders[name]}
        known = {(each.destination, *_taken(each)) for each in ours}
        for node, each in theirs:
            name = each.destination
            if not self._is_one(name):
                is_single = node in singly or exchange in self._chained
                yield Carried(exchange, *_taken(each), node, name if is_single else "")
            elif self._holders[name][0] != HERE:
                yield Carried(exchange, *_taken(each), TURNS, name)
            elif (name, *_taken(each)) not in known:
                yield Carried(exchange, *_taken(each), HERE, name)

    def _is_one(self, queue: str) -> bool:
        """Several nodes have it, and each message goes to one of them."""
        return self._mode in (STRICT, ON_DEMAND) and len(self._holders.get(queue, ())) > 1


def _taken(binding: Binding) -> tuple[str, bytes, bool]:
    """Of what: key and arguments."""
    return binding.key, binding.arguments, binding.matches_any
