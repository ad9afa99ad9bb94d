"""A sink that is about to be opened for a target: a queue, or an exchange.

That waits for the catalog's lock, and for whoever repairs what the former owner of the stream has
left.  So the worker does it, and the network thread is told.
"""

from __future__ import annotations

from shmbroker.ipc.base.errors import NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.queue_replica.copy import check_is_no_replica
from shmbroker.ipc.sink.sink import Sink
from shmbroker.netbridge.carrier.reached import Place, durable_queues, everything_in, queues_behind
from shmbroker.netbridge.link.action import OpenSink
from shmbroker.netbridge.link.times import NO_LIMIT
from shmbroker.netbridge.wire.words import TargetKind


class Opening:
    def __init__(
        self, broker: Broker, said: OpenSink, retention: float, node: bytes = b"", *,
        travels: bool = False, agent: bytes = b"",
    ) -> None:  # fmt: skip
        """`retention`: of the mark while the origin is idle, -1 for ever.

        `node`: which one this is, for those who may pour into all queues of a node.
        `travels`: it comes over a network link; `agent`: it comes from that of this node.
        """
        self._broker = broker
        self._retention = None if retention == NO_LIMIT else retention
        self._node = node
        self._travels = travels
        self._agent = (node, agent) if agent else None
        self.said = said
        self.queue: Queue | None = None
        """None: it is an exchange, or this node."""
        self.sink: Sink | None = None
        self.mark = 0
        self.unconfirmed: list[Place] = []
        """What of the stream may be there, and not be confirmed yet: whoever poured it before has
        not waited for that."""
        self._kept: list[object] = []

    # --- of the worker, one after the other ---------------------------------------------------

    def begin(self) -> None:
        sink = Sink(
            self._broker, self.said.origin, retention=self._retention, stops_at_refused=True,
            travels=self._travels, agent=self._agent,
        )  # fmt: skip
        try:
            match self.said.kind:
                case TargetKind.EXCHANGE:
                    behind = self._exchange(sink)
                case TargetKind.NODE:
                    behind = self._all(sink)
                case TargetKind.QUEUE:
                    behind = self._queue(sink)
        except BaseException:
            sink.close()
            raise
        if self.mark > 0:
            self.unconfirmed = everything_in(*(each._queue for each in behind))
            self._kept += behind
        self.sink = sink

    def _queue(self, sink: Sink) -> list[Queue]:
        name = self.said.name
        try:
            self.queue = self._broker.queue(name)
        except NotFound as error:
            if any(each.name == name for each in self._broker.exchanges()):
                raise NotFound(f"{error}; exchange://{name} is there") from None
            raise
        check_is_no_replica(self.queue)
        self.mark = sink.to_queue(self.queue)
        return [self.queue]

    def _exchange(self, sink: Sink) -> list[Queue]:
        exchange = self._broker.exchange(self.said.name)
        self._kept.append(exchange)
        self.mark = sink.to_exchange(exchange)
        return queues_behind(self._broker, exchange.name) if self.mark > 0 else []

    def _all(self, sink: Sink) -> list[Queue]:
        if not self._node or self.said.name != self._node.hex():
            raise NotFound(f"messages are for node {self.said.name}, which is not here")
        self.mark = sink.to_node()
        return durable_queues(self._broker) if self.mark > 0 else []

    def drop(self) -> None:
        """Nobody wants it any more: the next who pours the stream finds it in nobody's hand."""
        if self.sink is not None:
            self.sink.close()
            self.sink = None
