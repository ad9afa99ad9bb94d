"""shmbroker over TCP: an instance that listens, and programs that reach it by its address.

`OursRemote` has a durable queue; a publish returns when it is on disk.  `OursRemoteInMemory` has a
queue in memory; a publish returns when it is in the ring.  `OursLinked` is two instances and a
bridge: published at the near one, taken at the far one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice

from shmbroker import Message, connect
from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.program import Program
from shmbroker.perf.server.connection import BATCH, Connection
from shmbroker.perf.server.instance import COMMAND, is_served, serving, uri_of
from shmbroker.perf.server.linked import LINKED_QUEUE, Linked, far_beside, far_of
from shmbroker.perf.server.server import HOST, Place, Server

SLOTS = 1 << 18
PREFETCH = 2 * BATCH
ARENA = "1GiB"
WINDOW = "16MiB"
"""What may be unconfirmed; the peers have 8,192 messages outstanding, whatever their size."""


class OursRemote(Server):
    name = "shmbroker"
    distribution = "shmbroker"
    program = COMMAND
    is_durable = True

    @classmethod
    def install(cls) -> None:
        """It is what this file is of."""

    def start(self, place: Place, stack: ExitStack) -> Program:
        return serving(place, stack, {"instance.arena": ARENA})

    def is_up(self, place: Place) -> bool:
        return is_served(place)

    def connect(self, place: Place, queue: str) -> Connection:
        return _Remote(uri_of(place), queue, self.is_durable)


class OursRemoteInMemory(OursRemote):
    durability = "programs"
    is_durable = False


class _Remote(Connection):
    def __init__(self, uri: str, queue: str, is_durable: bool) -> None:
        self._broker = connect(f"{uri}?confirmation-window={WINDOW}")
        self._queue = self._broker.declare_queue(queue, slots=SLOTS, durable=is_durable)
        self._coming: Iterator[Message] | None = None

    def publish(self, body: bytes) -> object:
        return self._queue.publish(body)

    def publish_many(self, bodies: Sequence[bytes]) -> None:
        self._queue.publish_many(bodies)

    def take(self, count: int) -> list[bytes]:
        """They are sent ahead, and acknowledged behind us."""
        if self._coming is None:
            self._coming = self._queue.consume(prefetch=PREFETCH)
        return [message.body for message in islice(self._coming, count)]

    def close(self) -> None:
        self._broker.close()


class OursLinked(OursRemoteInMemory):
    def start(self, place: Place, stack: ExitStack) -> Program:
        far = far_beside(place, free_port())
        given: dict[str, object] = {"instance.arena": ARENA}
        serving(far, stack, {**given, "acceptors.bench.roles": ["client", "peering"],
                             "credentials.bench.role": ["client", "peering"]})  # fmt: skip
        return serving(
            place, stack,
            {
                **given,
                "credentials.bench.role": ["client", "peering"],
                "bridges.link.queue": LINKED_QUEUE,
                "bridges.link.to": f"tcp://{HOST}:{far.port}",
                "bridges.link.retry-interval": "50ms",
            },
        )  # fmt: skip

    def is_up(self, place: Place) -> bool:
        return is_served(place) and is_served(far_of(place))

    def connect(self, place: Place, queue: str) -> Connection:
        far = super().connect(far_of(place), queue)
        return Linked(super().connect(place, queue), far)


PEERS: tuple[Peer, ...] = ()
"""Of shmbroker.perf.scenarios.remote only."""
