"""shmbroker from plain Python, by its public calls.

Mode single takes, copies and acknowledges by three calls; the responder acknowledges when it has
replied. Mode combined is receive(), mode batch publish_many() and receive_many(). A subscriber's
cursor has next() only, which copies; so there is no mode loan to all. In mode loan a stop message
would look like a stamp, so that receivers cannot compete.

With more processes than cores the calls look a few times only, and the loops yield.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from shmbroker import QueueFull, Ring
from shmbroker.ipc.message.message import PortMessage
from shmbroker.ipc.ring import port as ports
from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.port import Port
from shmbroker.perf.harness.python_peer import PythonPeer
from shmbroker.perf.harness.tally import LARGE_BYTES
from shmbroker.perf.harness.task import Task
from shmbroker.perf.harness.topology import Seat
from shmbroker.perf.machine.size import STAMP_BYTES
from shmbroker.perf.machine.workspace import Workspace
from shmbroker.perf.ours.lanes import Lanes, make_lanes, owner_of, remove_lanes

SPINS_CROWDED = 32

Read = Callable[[PortMessage], bytes]
Send = Callable[[bytes], object]
Receive = Callable[[], bytes | None]


class OursPython(PythonPeer):
    name = "shmbroker-python"
    distribution = "shmbroker"

    def supports(self, task: Task) -> bool:
        topology = task.topology
        if task.mode == "batch":
            return not topology.measures_latency and task.size < LARGE_BYTES
        if topology.delivery == "to-all":
            return task.mode == "single"
        return task.mode != "loan" or not topology.sharing

    def setup(self, plan: Plan, workspace: Workspace) -> Lanes:
        return make_lanes(plan, workspace)

    def teardown(self, endpoint: Lanes) -> None:
        remove_lanes(endpoint)

    def open_port(self, seat: Seat, endpoint: Lanes, plan: Plan) -> Port:
        rings = {name: Ring.attach(name) for name in endpoint.names()}
        opened = {name: ring.port(owner_of(seat)) for name, ring in rings.items()}
        out, incoming = (opened.get(name or "") for name in endpoint.of(seat))

        def close() -> None:
            for ring in rings.values():
                ring.close()

        port = Port(full=QueueFull, close=close)
        if out:
            port = replace(port, send=_sending(out, plan), send_many=out.publish_many)
        if incoming:
            many = _receiving_many(incoming, plan)
            port = replace(port, receive=_receiving(incoming, plan), receive_many=many)
        if incoming and seat.role == "responder" and plan.task.mode != "combined":
            send, receive = _replying(port.send, incoming, plan)
            port = replace(port, send=send, receive=receive)
        return port


def _sending(out: ports.Port, plan: Plan) -> Send:
    spins = SPINS_CROWDED if plan.crowded else ports.SPINS
    if plan.task.mode != "loan":
        return partial(out.publish, spins=spins) if plan.crowded else out.publish
    relax = os.sched_yield if plan.crowded else None
    lend, size = out.loan, plan.task.size

    def send_loan(message: bytes) -> None:
        loan = lend(size)
        loan.view[: len(message)] = message
        while True:
            try:
                loan.publish(spins)
            except QueueFull:
                if relax:
                    relax()
            else:
                return

    return send_loan


def _receiving(incoming: ports.Port, plan: Plan) -> Receive:
    spins = SPINS_CROWDED if plan.crowded else ports.SPINS
    if plan.task.topology.delivery == "to-all":
        return partial(incoming.subscribe().next, spins)
    if plan.task.mode == "combined":
        return partial(incoming.receive, spins) if plan.crowded else incoming.receive
    take, read = incoming.try_take, _reading(plan)

    def take_read_ack() -> bytes | None:
        message = take(spins)
        if message is None:
            return None
        body = read(message)
        message.ack()
        return body

    def take_copy_ack() -> bytes | None:
        message = take(spins)
        if message is None:
            return None
        body = message.body
        message.ack()
        return body

    return take_read_ack if plan.task.mode == "loan" else take_copy_ack


def _receiving_many(incoming: ports.Port, plan: Plan) -> Callable[[], list[bytes]] | None:
    if plan.task.topology.delivery == "to-all":
        return None
    spins = SPINS_CROWDED if plan.crowded else ports.SPINS
    return partial(incoming.receive_many, plan.batch, spins)


def _replying(send: Send, incoming: ports.Port, plan: Plan) -> tuple[Send, Receive]:
    """Reply first, acknowledge then: if we die in between, somebody else replies once more."""
    take, read = incoming.try_take, _reading(plan)
    request: PortMessage | None = None

    def receive() -> bytes | None:
        nonlocal request
        request = take()
        return None if request is None else read(request)

    def reply(body: bytes) -> None:
        send(body)
        if request is not None:
            request.ack()

    return reply, receive


def _reading(plan: Plan) -> Read:
    """In mode loan most messages are read no further than their stamp (perf/harness/payload.py)."""
    if plan.task.mode != "loan":
        return lambda message: message.body
    senders = range(plan.task.topology.senders)
    full = {plan.payload.messages(sender)[0][:STAMP_BYTES] for sender in senders}

    def read_in_place(message: PortMessage) -> bytes:
        view = message.view
        stamp = bytes(view[:STAMP_BYTES])
        return bytes(view) if stamp in full else stamp

    return read_in_place


PEERS: tuple[Peer, ...] = (OursPython(),)
