"""multiprocessing.Pipe: what the standard library offers for two processes.

send_bytes / recv_bytes, not send / recv: the messages are bytes already, pickling them would
only cost. Ping-pong asks poll() first, which was measured at 16 against 67 µs for blocking in
read(2); streams block, which is faster there. The documentation forbids several writers or
readers on one end, so it does one to one only.
"""

from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection

from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.port import Port
from shmbroker.perf.harness.python_peer import PythonPeer
from shmbroker.perf.harness.task import Task
from shmbroker.perf.harness.topology import Seat
from shmbroker.perf.machine.workspace import Workspace

Ends = tuple[Connection, Connection]


class MpPipe(PythonPeer):
    name = "mp-pipe"
    polls = True

    def supports(self, task: Task) -> bool:
        return task.mode == "single" and task.topology.name in ("ping-pong", "one-to-one")

    def setup(self, plan: Plan, workspace: Workspace) -> Ends:
        return get_context("spawn").Pipe(duplex=plan.task.topology.measures_latency)

    def open_port(self, seat: Seat, endpoint: Ends, plan: Plan) -> Port:
        readable, writable = endpoint
        end = readable if seat.role in ("receiver", "initiator") else writable
        polls = plan.task.topology.measures_latency and self.polls
        receive = _polling(end) if polls else end.recv_bytes
        return Port(send=end.send_bytes, receive=receive, close=end.close)

    def teardown(self, endpoint: Ends) -> None:
        for end in endpoint:
            end.close()


class MpPipeBlocking(MpPipe):
    """As a program that waits would use it; the same as mp-pipe in a stream."""

    name = "mp-pipe-blocking"
    polls = False

    def supports(self, task: Task) -> bool:
        return super().supports(task) and task.topology.measures_latency


def _polling(end: Connection) -> Callable[[], bytes | None]:
    poll, read = end.poll, end.recv_bytes

    def receive() -> bytes | None:
        return read() if poll() else None

    return receive


PEERS: tuple[Peer, ...] = (MpPipe(), MpPipeBlocking())
