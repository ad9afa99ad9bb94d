"""shmbroker by named queues of a vhost: what a program uses, with lanes, liveness and waiting.

`shmbroker-named` waits as a user's program does: it looks for some microseconds, then sleeps.
`shmbroker-named-spin` has a processor to spare: it looks for a second before it sleeps.
Modes as in ours_python.py: single is get, body, ack; combined is receive.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from shmbroker import Message, Queue, QueueFull, connect, vhost
from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.port import Port
from shmbroker.perf.harness.python_peer import PythonPeer
from shmbroker.perf.harness.tally import LARGE_BYTES
from shmbroker.perf.harness.task import Task
from shmbroker.perf.harness.topology import Seat
from shmbroker.perf.machine.workspace import Workspace
from shmbroker.perf.ours.lanes import Lanes, geometry

Receive = Callable[[], bytes | None]


class OursNamed(PythonPeer):
    name = "shmbroker-named"
    distribution = "shmbroker"
    durability = "programs"
    spin: float | None = None

    def supports(self, task: Task) -> bool:
        if task.topology.delivery == "to-all":
            return False
        if task.mode == "batch":
            return not task.topology.measures_latency and task.size < LARGE_BYTES
        return task.mode in ("single", "combined")

    def setup(self, plan: Plan, workspace: Workspace) -> Lanes:
        slots, arena_bytes = geometry(plan)
        back = "back" if plan.task.topology.measures_latency else None
        lanes = Lanes("forth", back, workspace.token)
        with connect(f"shm://{workspace.token}", create=True, arena_bytes=arena_bytes) as broker:
            for name in lanes.names():
                broker.declare_queue(name, slots=slots)
        return lanes

    def teardown(self, endpoint: Lanes) -> None:
        vhost.delete(endpoint.vhost, force=True)

    def open_port(self, seat: Seat, endpoint: Lanes, plan: Plan) -> Port:
        broker = connect(f"shm://{endpoint.vhost}", spin=None if plan.crowded else self.spin)
        out, incoming = (broker.queue(name) if name else None for name in endpoint.of(seat))
        port = Port(full=QueueFull, close=broker.close)
        if out:
            port = replace(port, send=out.publish, send_many=out.publish_many)
        if incoming:
            receive = incoming.receive if plan.task.mode == "combined" else _getting(incoming)
            many = partial(incoming.receive_many, plan.batch)
            port = replace(port, receive=receive, receive_many=many)
        if incoming and seat.role == "responder" and plan.task.mode == "single":
            send, receive = _replying(port.send, incoming)
            port = replace(port, send=send, receive=receive)
        return port


class OursNamedSpin(OursNamed):
    name = "shmbroker-named-spin"
    spin = 1.0


def _getting(incoming: Queue) -> Receive:
    get = incoming.get

    def get_copy_ack() -> bytes:
        message = get()
        body = message.body
        message.ack()
        return body

    return get_copy_ack


def _replying(
    send: Callable[[bytes], object], incoming: Queue
) -> tuple[Callable[[bytes], object], Receive]:
    """Reply first, acknowledge then, as in ours_python.py."""
    get = incoming.get
    request: Message | None = None

    def receive() -> bytes:
        nonlocal request
        request = get()
        return request.body

    def reply(body: bytes) -> None:
        send(body)
        if request is not None:
            request.ack()

    return reply, receive


PEERS: tuple[Peer, ...] = (OursNamed(), OursNamedSpin())
