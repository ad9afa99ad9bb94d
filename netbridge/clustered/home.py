"""What this node had for one that was scaled down, and that gave it all that it had: it goes into
our own queues, once, as it would over a link to another node.

The node that has left has told how much of this stream had come there (streams.py).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from shmbroker.core.codes import FULL, GONE, OK
from shmbroker.core.layout import RECORD_HEAD_BYTES, RECORD_LENGTH_AT
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.follower.follower import Follower
from shmbroker.ipc.sink.sink import Sink
from shmbroker.netbridge.carrier.reached import everything_in, is_confirmed
from shmbroker.netbridge.carrier.source import position_in
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.link.origin import origin_of
from shmbroker.netbridge.wire.words import FORWARDING_LINK

TOGETHER: Final = 64
BYTES_TOGETHER: Final = 1 << 20
AGAIN_SECONDS: Final = 0.05
"""When it tries again where there was no room."""
LOOK_SECONDS: Final = 0.5
"""So long it waits for something to come, before it looks whether it is to end."""
COMPLAIN_SECONDS: Final = 1.0
CONFIRM_SECONDS: Final = 0.01


class Home(Closable):
    """Of one queue towards a node that has left, with a thread of its own."""

    def __init__(
        self, broker: Broker, node: Node, queue: str, ours: Node,
        emptied: Callable[[Node], None], tell: Callable[[Mapping[str, Any]], None],
    ) -> None:  # fmt: skip
        """`emptied`: in that thread, when nothing has come for `patience` seconds."""
        self.patience = math.inf
        self._broker, self._node, self._name, self._ours = broker, node, queue, ours
        self._link, self._identity = f"{FORWARDING_LINK} {node.hex()}", b""
        self._emptied, self._tell = emptied, tell
        self._has_complained = False
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shmbroker-home", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """What was poured and not confirmed is known when it comes again."""
        self._is_closed.set()
        self._thread.join()

    # --- in the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_closed.is_set():
            try:
                self._pour_all()
            except Error as error:  # the vhost ends
                self._complain(error)
                self._is_closed.wait(COMPLAIN_SECONDS)

    def _complain(self, error: Error) -> None:
        if not self._has_complained:
            self._has_complained = True
            self._tell({"event": "cluster", "level": "warning", "state": "not redirected",
                        "queue": self._name, "detail": str(error)})  # fmt: skip

    def _pour_all(self) -> None:
        queue = self._broker.queue(self._name)
        follower = Follower(
            self._broker, f"link {self._link}", kind="link", lasting=True, skips=True
        )
        try:
            number = follower.add(queue)
            place = follower.stands(number)
            self._identity = place.identity
            origin = origin_of(self._ours, self._link, place.identity, 0)
            sink = Sink(self._broker, origin, stops_at_refused=True)
            try:
                follower.seek(number, max(place.gate, sink.to_node()))
                self._go_on(queue, follower, number, sink)
            finally:
                sink.close()
        finally:
            follower.close()

    def _go_on(self, queue: Any, follower: Follower, number: int, sink: Sink) -> None:
        idle_since = time.monotonic()
        while not self._is_closed.is_set():
            batch = follower.read_some(TOGETHER, BYTES_TOGETHER)
            if batch is not None:
                if self._pour(queue, batch.memory, sink) and self._confirm(sink):
                    follower.retire(number, follower.next(number))
                idle_since = time.monotonic()
            elif time.monotonic() >= idle_since + self.patience:
                self._emptied(self._node)
                self._is_closed.wait()
            else:
                follower.wait(LOOK_SECONDS)

    def _pour(self, queue: Any, records: memoryview, sink: Sink) -> bool:
        """False: it is closed before all of it is there."""
        while records and not self._is_closed.is_set():
            told = sink.pour(records)
            records = records[told.bytes :]
            if told.has_stopped:
                records = self._refused(queue, records, sink)
            elif told.is_full:
                self._is_closed.wait(AGAIN_SECONDS)
        return not records

    def _refused(self, queue: Any, records: memoryview, sink: Sink) -> memoryview:
        """The queue that it is for is not here: it goes where those without one go."""
        position = position_in(records)
        code: int = lib.sb_reject_at(queue._queue, position)
        while code == FULL and not self._is_closed.wait(AGAIN_SECONDS):
            code = lib.sb_reject_at(queue._queue, position)
        if code == FULL:
            return records
        if code not in (OK, GONE):
            raise queue._error(code, "setting a message aside of")  # told, and tried again
        sink.skip(position + 1)
        return records[len(one_of(records)) :]

    def _confirm(self, sink: Sink) -> bool:
        """False: it is closed before that; what was poured is known when it is read again."""
        places = [place for each in sink.queues() for place in everything_in(each)]
        while places and not self._is_closed.is_set():
            if is_confirmed(places[0]):
                del places[0]
            else:
                self._is_closed.wait(CONFIRM_SECONDS)
        return not places


def one_of(records: memoryview) -> memoryview:
    """The first of these."""
    length = int.from_bytes(records[RECORD_LENGTH_AT : RECORD_LENGTH_AT + 4], "little")
    return records[: RECORD_HEAD_BYTES + (length + 7 & -8)]
