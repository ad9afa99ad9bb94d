"""shmbroker by a durable queue: an instance as users make and run it, a process of its own.

A publish returns when it is on disk, the default of a durable queue; many are published in batches
without waiting, and confirmed once.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from sysconfig import get_path

from shmbroker import connect, vhost
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.creation import create
from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.machine.program import Program
from shmbroker.perf.server.connection import BATCH, Connection
from shmbroker.perf.server.server import Place, Server

SLOTS = 1 << 18
ARENA = "1GiB"


class OursDurable(Server):
    name = "shmbroker-durable"
    distribution = "shmbroker"
    program = f"{get_path('scripts')}/shmbroker"

    @classmethod
    def install(cls) -> None:
        """It is what this file is of."""

    def start(self, place: Place, stack: ExitStack) -> Program:
        instance = place.folder / "instance"
        create(instance, {"instance.vhost": _vhost(place), "instance.arena": ARENA})
        stack.callback(vhost.delete, _vhost(place), force=True)
        command = [self.program, "run", str(instance)]
        return stack.enter_context(Program(command, place.folder / "said"))

    def is_up(self, place: Place) -> bool:
        return status.read(place.folder / "instance").state == "live"

    def connect(self, place: Place, queue: str) -> Connection:
        return _Durable(place, queue)


def _vhost(place: Place) -> str:
    return place.folder.name


class _Durable(Connection):
    def __init__(self, place: Place, queue: str) -> None:
        self._broker = connect(f"shm://{_vhost(place)}")
        self._queue = self._broker.declare_queue(queue, slots=SLOTS, durable=True)

    def publish(self, body: bytes) -> object:
        return self._queue.publish(body)

    def publish_many(self, bodies: Sequence[bytes]) -> None:
        publish_many = self._queue.publish_many
        for at in range(0, len(bodies), BATCH):
            publish_many(bodies[at : at + BATCH], confirm="shm")
        self._queue.confirm()

    def take(self, count: int) -> list[bytes]:
        return self._queue.receive_many(count)

    def close(self) -> None:
        self._broker.close()


PEERS: tuple[Peer, ...] = (OursDurable(),)
