"""pyzmq over ipc://, that is, Unix sockets, and over tcp://; an I/O thread in each process.

PAIR between two, PUSH/PULL where senders or receivers compete, XPUB/SUB to all. XPUB with
XPUB_NODROP, because PUB drops what a slow subscriber cannot take, and nothing may be lost here.

The receive blocks: polling with NOBLOCK was measured, and is slower in every topology (it takes
the core from the I/O thread). Large messages go with copy=False, as the documentation advises.
"""

import time
from importlib import import_module
from typing import Any

from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.port import Port
from shmbroker.perf.harness.python_peer import PythonPeer
from shmbroker.perf.harness.tally import LARGE_BYTES, Message
from shmbroker.perf.harness.task import Task
from shmbroker.perf.harness.topology import Seat
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.workspace import Workspace
from shmbroker.perf.server.server import HOST

ROOM = 1000  # messages; the library's default
RECONNECT_MS = 1
SETTLE_S = 0.1
"""Connecting goes on in the background; it is not what is measured."""
ROOM_LARGE = 4  # at each end, so 8 in all


class ZeroMq(PythonPeer):
    name = "pyzmq"
    distribution = "pyzmq"
    module = "zmq"

    def supports(self, task: Task) -> bool:
        return task.mode == "single"

    def setup(self, plan: Plan, workspace: Workspace) -> str:
        return f"ipc://{workspace.directory}/zmq"

    def open_port(self, seat: Seat, endpoint: str, plan: Plan) -> Port:
        zmq: Any = import_module("zmq")
        context = zmq.Context()
        large = plan.task.size >= LARGE_BYTES
        socket = context.socket(_socket_type(zmq, seat, plan))
        socket.set_hwm(ROOM_LARGE if large else ROOM)
        socket.reconnect_ivl = RECONNECT_MS
        _connect(zmq, socket, seat, plan, endpoint)

        def close() -> None:
            socket.close(linger=0)
            context.term()

        if not large:
            return Port(send=socket.send, receive=socket.recv, close=close)

        def send_large(message: bytes) -> None:
            socket.send(message, copy=False)

        def receive_large() -> Message:
            return memoryview(socket.recv(copy=False).buffer)

        return Port(send=send_large, receive=receive_large, close=close)


class ZeroMqTcp(ZeroMq):
    """By loopback, as it would go between hosts."""

    name = "pyzmq-tcp"

    def setup(self, plan: Plan, workspace: Workspace) -> str:
        return f"tcp://{HOST}:{free_port()}"


def _socket_type(zmq: Any, seat: Seat, plan: Plan) -> int:
    topology = plan.task.topology
    if topology.delivery == "to-all":
        return int(zmq.XPUB if seat.role == "sender" else zmq.SUB)
    if topology.senders > 1 or topology.receivers > 1:
        return int(zmq.PUSH if seat.role == "sender" else zmq.PULL)
    return int(zmq.PAIR)


def _connect(zmq: Any, socket: Any, seat: Seat, plan: Plan, address: str) -> None:
    """The single process binds; those that are several, or answer, connect."""
    topology = plan.task.topology
    if socket.type == zmq.SUB:
        socket.subscribe(b"")
    if socket.type == zmq.XPUB:
        socket.setsockopt(zmq.XPUB_NODROP, 1)
        socket.setsockopt(zmq.XPUB_VERBOSE, 1)  # or equal subscriptions are reported once only
    single = ("initiator", "sender") if topology.senders == 1 else ("receiver",)
    binds = seat.role in single
    if binds:
        socket.bind(address)
    else:
        socket.connect(address)
    if socket.type == zmq.XPUB:
        for _ in range(topology.receivers):
            socket.recv()  # its subscription; before it, everything for it would be lost
    time.sleep(SETTLE_S)


PEERS: tuple[Peer, ...] = (ZeroMq(), ZeroMqTcp())
