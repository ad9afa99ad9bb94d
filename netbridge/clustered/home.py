"""What this node had for one that was scaled down, and that gave it all that it had: it goes into
our own queues, once, as it would over a link to another node.

The node that has left has told how much of this stream had come there (streams.py).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from shmbroker.core.codes import FULL, GONE, OK
from shmbroker.core.layout import RECORD_HEAD_BYTES, RECORD_LENGTH_AT
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.follower.follower import Follower
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.sink.sink import Sink
from shmbroker.netbridge.carrier.reached import everything_in, is_confirmed
from shmbroker.netbridge.carrier.source import position_in
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.link.origin import origin_of
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.wire.words import FORWARDING_LINK

TOGETHER: Final = 64
BYTES_TOGETHER: Final = 1 << 20
AGAIN_SECONDS: Final = 0.05
"""When it tries again where there was no room."""
LOOK_SECONDS: Final = 0.5
"""So long it waits for something to come, before it looks whether it is to end."""
COMPLAIN_SECONDS: Final = 1.0
CONFIRM_SECONDS: Final = 0.01


class Stream(NamedTuple):
    """What is in a queue towards a node, from where it is not known here."""

    queue: Queue
    follower: Follower
    number: int
    sink: Sink
    link: str
    identity: bytes
    """Of the ring."""


@contextmanager
def stream(broker: Broker, node: Node, name: str, ours: Identity) -> Iterator[Stream]:
    """`name`: of the queue.  What is known here has left it from now on: whoever poured it ended
    before it could say so."""
    link, queue = f"{FORWARDING_LINK} {node.hex()}", broker.queue(name)
    with Follower(broker, f"link {link}", kind="link", lasting=True, skips=True) as follower:
        number = follower.add(queue)
        place = follower.stands(number)
        origin = origin_of(ours.node, link, place.identity, ours.history)
        with Sink(broker, origin, stops_at_refused=True) as sink:
            known = max(place.gate, sink.to_node())
            follower.seek(number, known)
            follower.retire(number, known)
            yield Stream(queue, follower, number, sink, link, place.identity)


class Home(Closable):
    """Of one queue towards a node that has left, with a thread of its own."""

    def __init__(
        self, broker: Broker, node: Node, queue: str, ours: Identity,
        emptied: Callable[[Node], None], tell: Callable[[Mapping[str, Any]], None],
    ) -> None:  # fmt: skip
        """`emptied`: in that thread, when nothing has come for `patience` seconds."""
        self.patience = math.inf
        self._broker, self._node, self._name, self._ours = broker, node, queue, ours
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
        with stream(self._broker, self._node, self._name, self._ours) as of:
            self._go_on(of)

    def _go_on(self, of: Stream) -> None:
        idle_since = time.monotonic()
        while not self._is_closed.is_set():
            batch = of.follower.read_some(TOGETHER, BYTES_TOGETHER)
            self._has_work(batch is not None)
            if batch is not None:
                if self._pour(of, batch.memory) and self._confirm(of.sink):
                    of.follower.retire(of.number, of.follower.next(of.number))
                idle_since = time.monotonic()
            elif time.monotonic() >= idle_since + self.patience:
                self._emptied(self._node)
                self._is_closed.wait()
            else:
                of.follower.wait(LOOK_SECONDS)

    def _has_work(self, has: bool) -> None:
        """Something is in the queue, or nothing."""

    def _pour(self, of: Stream, records: memoryview) -> bool:
        """False: it is closed before all of it is there."""
        while records and not self._is_closed.is_set():
            told = of.sink.pour(records)
            records = records[told.bytes :]
            if told.has_stopped:
                records = self._refused(of.queue, records, of.sink)
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
        places = everything_in(*sink.queues())
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
