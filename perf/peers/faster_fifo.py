"""faster-fifo: a circular buffer in shared memory under a process-shared mutex.

Its README offers serializers of one's own to go without pickle: the messages are bytes already,
so ``dumps`` hands them through and ``loads`` copies them out. get_many/put_many are its batch
calls. Streams wait in its blocking get(), which was measured as fast as polling or faster;
ping-pong polls with get(block=False): 7.5 instead of 59 µs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from queue import Empty
from typing import Any

from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.port import Port
from shmbroker.perf.harness.python_peer import PythonPeer
from shmbroker.perf.harness.tally import LARGE_BYTES
from shmbroker.perf.harness.task import Task
from shmbroker.perf.harness.topology import Seat
from shmbroker.perf.machine.workspace import Workspace

ROOM_BYTES = 1_000_000  # the library's default
ROOM_LARGE = 8  # messages


def as_it_is(message: bytes) -> bytes:
    return message


@dataclass(frozen=True, slots=True)
class Lines:
    forth: Any
    back: Any


class FasterFifo(PythonPeer):
    name = "faster-fifo"
    distribution = "faster-fifo"
    module = "faster_fifo"

    def supports(self, task: Task) -> bool:
        if task.topology.delivery == "to-all":
            return False
        if task.mode == "batch":
            return not task.topology.measures_latency and task.size < LARGE_BYTES
        return task.mode == "single"

    def setup(self, plan: Plan, workspace: Workspace) -> Lines:
        queue = import_module("faster_fifo").Queue
        room = ROOM_BYTES
        if plan.task.size >= LARGE_BYTES:
            room = ROOM_LARGE * (plan.task.size + 64)
        return Lines(*(queue(room, loads=bytes, dumps=as_it_is) for _ in range(2)))

    def open_port(self, seat: Seat, endpoint: Lines, plan: Plan) -> Port:
        out, back = endpoint.forth, endpoint.back
        if seat.role == "responder":
            out, back = back, out
        incoming = out if seat.role == "receiver" else back
        # A receive buffer that must grow is grown between two reads; with others competing, the
        # second finds nothing and raises Empty out of a blocking get(). So: large at once.
        incoming.reallocate_msg_buffer(incoming.max_size_bytes)
        polls = plan.task.topology.measures_latency
        return Port(
            send=out.put,
            receive=_polling(incoming) if polls else incoming.get,
            send_many=out.put_many,
            receive_many=incoming.get_many,
        )


def _polling(queue: Any) -> Callable[[], bytes | None]:
    get = queue.get

    def receive() -> bytes | None:
        try:
            message: bytes = get(False)
        except Empty:
            return None
        return message

    return receive


PEERS: tuple[Peer, ...] = (FasterFifo(),)
