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
from shmbroker.netbridge.clustered.home import AGAIN_SECONDS, Home, Stream, one_of
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.link.origin import origin_of
from shmbroker.netbridge.link.peer import Identity

WORD: Final = 8


class Anew(Home):
    """Of one queue towards such a node."""

    def __init__(
        self, broker: Broker, node: Node, queue: str, ours: Identity,
        emptied: Callable[[Node], None], tell: Callable[[Mapping[str, Any]], None],
        destinations: Callable[[], Mapping[int, tuple[Node, ...]] | None],
        way: Callable[[Node], str], changed: Callable[[], None],
    ) -> None:  # fmt: skip
        """`destinations`: who gets what is for the queue with a target, perhaps HERE; None: that is
        not known yet.  `way`: the name of the queue towards a node.  `changed`: whether it has
        work."""
        self.has_work = False
        self._reached = 0
        """All below went somewhere."""
        self._destinations, self._way, self._changed = destinations, way, changed
        self._sinks: dict[Node, Sink] = {}
        super().__init__(broker, node, queue, ours, emptied, tell)

    def _has_work(self, has: bool) -> None:
        if has != self.has_work:
            self.has_work = has
            self._changed()

    def _go_on(self, of: Stream) -> None:
        """A link may have the rest, if it is closed."""
        try:
            super()._go_on(of)
        finally:
            of.follower.retire(of.number, max(self._reached, of.follower.stands(of.number).gate))
            for each in self._sinks.values():
                each.close()
            self._sinks.clear()

    def _pour(self, of: Stream, records: memoryview) -> bool:
        while records and not self._is_closed.is_set():
            known = self._destinations()
            if known is None:
                self._is_closed.wait(AGAIN_SECONDS)
                continue
            record = one_of(records)
            target = _target_in(record)
            # a queue that was declared a moment ago is not known yet
            nodes = known.get(target, (HERE,) if target > 0 else ())
            if self._goes(of, record, nodes):
                records = records[len(record) :]
                self._reached = position_in(record) + 1
            else:
                self._is_closed.wait(AGAIN_SECONDS)
        return not records

    def _goes(self, of: Stream, record: memoryview, nodes: tuple[Node, ...]) -> bool:
        """To one of these: the same one if it is read again, as long as it is these.  False: there
        is no room now."""
        if nodes:
            node = nodes[position_in(record) % len(nodes)]
            sink = of.sink if node == HERE else self._towards(of, node)
            told = sink.pour(record, doubts=True)
            if not told.has_stopped:
                return not told.is_full
        return not self._refused(of.queue, record, of.sink)

    def _towards(self, of: Stream, node: Node) -> Sink:
        if node not in self._sinks:
            ours, link = self._ours, f"{of.link} to {node.hex()}"
            origin = origin_of(ours.node, link, of.identity, ours.history)
            sink = self._sinks[node] = Sink(self._broker, origin, stops_at_refused=True)
            sink.to_queue(serving(self._broker, self._way(node)))
        return self._sinks[node]

    def _confirm(self, sink: Sink) -> bool:
        return all(super(Anew, self)._confirm(each) for each in (sink, *self._sinks.values()))


def _target_in(record: memoryview) -> int:
    """That of a queue, for what goes to its schedule as well; 0: it says none."""
    chunk = record[RECORD_HEAD_BYTES:]
    if not _word(chunk, CHUNK_MARK_AT) >> MARK_FLAGS_SHIFT & CHUNK_EXTENDED:
        return 0
    target = _word(chunk, CHUNK_TARGET_AT)
    return target if target < 0 else target | 1


def _word(chunk: memoryview, at: int) -> int:
    return int.from_bytes(chunk[at : at + WORD], "little", signed=True)
