"""Keeps the cluster's own bindings in the catalog as they are to be; who publishes follows them.

They outlive this process, and with the journal the machine: what is published while the broker is
starting, or before the other node was seen again, waits for that node too.  So of a node of which
nothing was heard yet they stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from shmbroker.core.layout import BINDING_HERE
from shmbroker.ipc.base.errors import NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.exchange.own_binding import OwnBinding, change_own, own_bindings
from shmbroker.ipc.sink.target import target_of, target_of_exchange
from shmbroker.netbridge.broker.gates import TOWARDS
from shmbroker.netbridge.cluster.balancing import HERE, TURNS
from shmbroker.netbridge.cluster.topics import Carried
from shmbroker.netbridge.clustered.stand_ins import STANDS_IN, stand_in
from shmbroker.netbridge.clustered.towards import led_to, towards
from shmbroker.netbridge.election.question import Node

NO_ARGUMENTS: Final = b"\x80"


class TopicBindings:
    """Of one thread at a time: it waits for the catalog's lock."""

    def __init__(
        self, broker: Broker, cluster: str, tell: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self._broker, self._cluster, self._tell = broker, cluster, tell
        self._told: set[OwnBinding] = set()
        self._done: object = None

    def carries(self, wanted: Iterable[Carried], settled: frozenset[Node]) -> None:
        """From now on these; and those of nodes that are not settled, as they are."""
        asked = {self._own(each) for each in wanted}
        done = asked, settled, self._broker._catalog.generation
        if done == self._done:
            return
        there = own_bindings(self._broker)
        known = led_to(self._broker, self._cluster)
        kept_ways = {towards(self._cluster, node) for node in known - settled}
        ended = {
            each for each in there - asked
            if (each.target == BINDING_HERE and not kept_ways)
            or (each.queue.startswith(TOWARDS) and each.queue not in kept_ways)
        }  # fmt: skip
        self._done = done  # what is changed now moves the generation, and is looked at once more
        for together in _together(asked - there, ended):
            self._change(*together)

    def kept_in_turn(self, queues: Iterable[str], settled: frozenset[Node]) -> frozenset[str]:
        """Those whose stand-in keeps its bindings: a node that is not settled may have them too."""
        are_all = led_to(self._broker, self._cluster) <= settled
        if are_all or not (bound := self._bound(STANDS_IN)):
            return frozenset()
        return frozenset(each for each in queues if stand_in(each) in bound)

    def leads_to(self) -> frozenset[Node]:
        """Nodes that have bindings here."""
        bound, known = self._bound(TOWARDS), led_to(self._broker, self._cluster)
        return frozenset(node for node in known if towards(self._cluster, node) in bound)

    def _bound(self, begin: str) -> set[str]:
        """Queues with names that begin so, to which own bindings lead."""
        queues = {each.queue for each in own_bindings(self._broker)}
        return {each for each in queues if each.startswith(begin)}

    def _own(self, carried: Carried) -> OwnBinding:
        arguments = b"" if carried.arguments == NO_ARGUMENTS else carried.arguments
        if carried.to == HERE:
            queue, target = carried.queue, BINDING_HERE
        elif carried.to == TURNS:
            queue, target = stand_in(carried.queue), BINDING_HERE
        else:
            queue = towards(self._cluster, carried.to)
            target = (
                target_of(carried.queue) if carried.queue else target_of_exchange(carried.exchange)
            )
        return OwnBinding(
            carried.exchange, queue, carried.key, arguments, carried.matches_any, target
        )

    def _change(self, wanted: Sequence[OwnBinding], ended: Sequence[OwnBinding]) -> None:
        failed = change_own(self._broker, wanted, ended)
        self._told -= {*wanted, *ended} - failed.keys()
        for binding, error in failed.items():
            # an end of it was deleted: the next look tells
            if not isinstance(error, NotFound) and binding not in self._told:
                self._told.add(binding)
                self._tell({"event": "cluster", "level": "error", "state": "not bound",
                            "exchange": binding.exchange, "detail": str(error)})  # fmt: skip


def _together(
    wanted: Iterable[OwnBinding], ended: Iterable[OwnBinding]
) -> Iterator[tuple[list[OwnBinding], list[OwnBinding]]]:
    """Those of an exchange: a message that sees one without the others goes both ways or none."""
    changes = sorted([*((each, False) for each in wanted), *((each, True) for each in ended)],
                     key=lambda change: change[0].exchange)  # fmt: skip
    for _, of_one in groupby(changes, lambda change: change[0].exchange):
        some = list(of_one)
        yield [each for each, ends in some if not ends], [each for each, ends in some if ends]
