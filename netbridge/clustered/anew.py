"""What was on its way to a node that was forgotten is routed anew: each message goes to a queue of
its name, here or at another node; one for which there is none is set aside.

So is one that was for an exchange there: all queues that are bound here and at the other nodes have
copies of their own.

What was sent, and not confirmed, may be at the node that is forgotten.  So each message says where
it is delivered that it may have come before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from shmbroker.core.layout import (
    CHUNK_EXTENDED,
    CHUNK_MARK_AT,
    CHUNK_TARGET_AT,
    MARK_FLAGS_SHIFT,
    RECORD_HEAD_BYTES,
)
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.sink.sink import Sink
from shmbroker.netbridge.carrier.reached import serving
from shmbroker.netbridge.carrier.source import position_in
from shmbroker.netbridge.cluster.balancing import HERE
from shmbroker.netbridge.clustered.home import AGAIN_SECONDS, Home, one_of
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.link.origin import origin_of

WORD: Final = 8


class Anew(Home):
    """Of one queue towards such a node."""

    def __init__(
        self, broker: Broker, node: Node, queue: str, ours: Node,
        emptied: Callable[[Node], None], tell: Callable[[Mapping[str, Any]], None],
        destinations: Callable[[], Mapping[int, tuple[Node, ...]] | None],
        way: Callable[[Node], str],
    ) -> None:  # fmt: skip
        """`destinations`: who gets what is for the queue with a target, perhaps HERE; None: that is
        not known yet.  `way`: the name of the queue towards a node."""
        self._destinations, self._way = destinations, way
        self._sinks: dict[Node, Sink] = {}
        super().__init__(broker, node, queue, ours, emptied, tell)

    def _pour(self, queue: Any, records: memoryview, sink: Sink) -> bool:
        while records and not self._is_closed.is_set():
            known = self._destinations()
            if known is None:
                self._is_closed.wait(AGAIN_SECONDS)
                continue
            record = one_of(records)
            # the same one if it is read again, as long as the same nodes have the queue
            nodes = known.get(_target_in(record), ())
            node = nodes[position_in(record) % len(nodes)] if nodes else None
            if node is None:
                records = self._refused(queue, records, sink)
                continue
            told = (sink if node == HERE else self._towards(node)).pour(record, doubts=True)
            if told.has_stopped:
                records = self._refused(queue, records, sink)
            elif told.is_full:
                self._is_closed.wait(AGAIN_SECONDS)
            else:
                records = records[len(record) :]
        return not records

    def _towards(self, node: Node) -> Sink:
        if node not in self._sinks:
            origin = origin_of(self._ours, f"{self._link} to {node.hex()}", self._identity, 0)
            sink = self._sinks[node] = Sink(self._broker, origin, stops_at_refused=True)
            sink.to_queue(serving(self._broker, self._way(node)))
        return self._sinks[node]

    def _confirm(self, sink: Sink) -> bool:
        return all(super(Anew, self)._confirm(each) for each in (sink, *self._sinks.values()))

    def _pour_all(self) -> None:
        try:
            super()._pour_all()
        finally:
            for each in self._sinks.values():
                each.close()
            self._sinks.clear()


def _target_in(record: memoryview) -> int:
    """That of a queue, for what goes to its schedule as well; 0: it says none."""
    chunk = record[RECORD_HEAD_BYTES:]
    if not _word(chunk, CHUNK_MARK_AT) >> MARK_FLAGS_SHIFT & CHUNK_EXTENDED:
        return 0
    target = _word(chunk, CHUNK_TARGET_AT)
    return target if target < 0 else target | 1


def _word(chunk: memoryview, at: int) -> int:
    return int.from_bytes(chunk[at : at + WORD], "little", signed=True)
