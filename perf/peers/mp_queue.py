"""multiprocessing.Queue: the standard library's queue, a feeder thread in front of a pipe.

Bounded, as a queue in use would be. It has no batch call. get() blocks:
get(block=False) in a loop was measured slower.
"""

from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.queues import Queue

from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.port import Port
from shmbroker.perf.harness.python_peer import PythonPeer
from shmbroker.perf.harness.tally import LARGE_BYTES
from shmbroker.perf.harness.task import Task
from shmbroker.perf.harness.topology import Seat
from shmbroker.perf.machine.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Lines:
    forth: "Queue[bytes]"
    back: "Queue[bytes]"


class MpQueue(PythonPeer):
    name = "mp-queue"

    def supports(self, task: Task) -> bool:
        return task.mode == "single" and task.topology.delivery != "to-all"

    def setup(self, plan: Plan, workspace: Workspace) -> Lines:
        context = get_context("spawn")
        room = 1000 if plan.task.size < LARGE_BYTES else 8
        return Lines(context.Queue(room), context.Queue(room))

    def open_port(self, seat: Seat, endpoint: Lines, plan: Plan) -> Port:
        out, back = endpoint.forth, endpoint.back
        if seat.role == "responder":
            out, back = back, out
        incoming = out if seat.role == "receiver" else back

        def close() -> None:
            # What is unread now are surplus stop messages: do not wait for anybody to read them.
            out.cancel_join_thread()
            out.close()

        return Port(send=out.put, receive=incoming.get, close=close)

    def teardown(self, endpoint: Lines) -> None:
        endpoint.forth.close()
        endpoint.back.close()


PEERS: tuple[Peer, ...] = (MpQueue(),)
