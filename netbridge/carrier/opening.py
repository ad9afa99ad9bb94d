"""A sink that is about to be opened for a target.

That waits for the catalog's lock, and for whoever repairs what the former owner of the stream has
left.  So the worker does it, and the network thread is told.
"""

from __future__ import annotations

from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.sink.sink import Sink
from shmbroker.netbridge.link.action import OpenSink
from shmbroker.netbridge.link.times import NO_LIMIT


class Opening:
    def __init__(self, broker: Broker, said: OpenSink, retention: float) -> None:
        """`retention`: of the mark while the origin is idle, -1 for ever."""
        self._broker = broker
        self._retention = None if retention == NO_LIMIT else retention
        self.said = said
        self.queue: Queue
        self.sink: Sink | None = None
        self.mark = 0

    # --- of the worker, one after the other ---------------------------------------------------

    def begin(self) -> None:
        queue = self._broker.queue(self.said.name)
        sink = Sink(
            self._broker, self.said.origin, retention=self._retention, stops_at_refused=True
        )
        try:
            self.mark = sink.to_queue(queue)
        except BaseException:
            sink.close()
            raise
        self.queue, self.sink = queue, sink

    def drop(self) -> None:
        """Nobody wants it any more: the next who pours the stream finds it in nobody's hand."""
        if self.sink is not None:
            self.sink.close()
            self.sink = None
