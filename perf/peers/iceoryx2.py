"""iceoryx2: zero-copy publish-subscribe over shared memory, with a Rust core.

Mode loan is what it is made for: the message is written into a loaned sample and read in place.
Mode single does the same with a copy in and a copy out, as a user does who wants to keep it.
"""

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from shmbroker.perf.harness.gate import PATIENCE_S
from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.port import Port
from shmbroker.perf.harness.python_peer import PythonPeer
from shmbroker.perf.harness.tally import LARGE_BYTES
from shmbroker.perf.harness.task import Task
from shmbroker.perf.harness.topology import Seat
from shmbroker.perf.machine.size import STAMP_BYTES
from shmbroker.perf.machine.workspace import Workspace

ROOM = 1024  # messages in a subscriber's buffer
ROOM_LARGE = 8


@dataclass(frozen=True, slots=True)
class Domain:
    """Where this run's services are, apart from all others of the host."""

    prefix: str
    root: str


class Iceoryx2(PythonPeer):
    name = "iceoryx2"
    distribution = "iceoryx2"
    module = "iceoryx2"

    def supports(self, task: Task) -> bool:
        return task.mode in ("single", "loan") and not task.topology.sharing

    def setup(self, plan: Plan, workspace: Workspace) -> Domain:
        return Domain(f"{workspace.token}-", str(workspace.directory))

    def open_port(self, seat: Seat, endpoint: Domain, plan: Plan) -> Port:
        library: Any = import_module("iceoryx2")
        library.set_log_level(library.LogLevel.Error)
        node = _node(library, endpoint)
        forth, back = "forth", "back"
        if seat.role == "responder":
            forth, back = back, forth
        incoming = forth if seat.role == "receiver" else back
        calls: dict[str, Any] = {}
        ends: list[Any] = []
        if seat.role != "sender":
            source = _service(library, node, incoming, plan)
            subscriber = source.subscriber_builder().create()
            calls["receive"] = _receiving(subscriber, plan)
            ends.append(subscriber)
        if seat.role != "receiver":
            publisher = _publisher(library, _service(library, node, forth, plan), plan)
            calls["send"] = _sending(publisher, plan)
            ends.append(publisher)
        if seat.role != "sender":
            _connect(source, subscriber, plan)

        def close() -> None:
            for end in ends:
                end.delete()

        return Port(close=close, **calls)


def _node(library: Any, domain: Domain) -> Any:
    config = library.config.default()
    config.global_cfg.prefix = library.FileName.new(domain.prefix)
    config.global_cfg.root_path = library.Path.new(domain.root)
    return library.NodeBuilder.new().config(config).create(library.ServiceType.Ipc)


def _service(library: Any, node: Any, name: str, plan: Plan) -> Any:
    topology = plan.task.topology
    return (
        node.service_builder(library.ServiceName.new(name))
        .publish_subscribe(library.Slice[ctypes.c_uint8])
        .enable_safe_overflow(False)  # overflow would overwrite what was not read
        .subscriber_max_buffer_size(ROOM_LARGE if plan.task.size >= LARGE_BYTES else ROOM)
        .max_publishers(topology.senders)
        .max_subscribers(topology.receivers)
        .open_or_create()
    )


def _publisher(library: Any, service: Any, plan: Plan) -> Any:
    """Made when all subscribers are there, so that it begins with a connection to each."""
    subscribers = plan.task.topology.receivers
    _await(lambda: service.dynamic_config.number_of_subscribers >= subscribers)
    return (
        service.publisher_builder()
        .initial_max_slice_len(plan.task.size)
        .backpressure_strategy(library.BackpressureStrategy.RetryUntilDelivered)
        .create()
    )


def _connect(service: Any, subscriber: Any, plan: Plan) -> None:
    """A subscriber opens its end of a connection in its first receive() after the publisher
    came. Until then a publisher that finds the buffer full does not retry but skips it, in
    spite of RetryUntilDelivered (version 0.10.0): messages would be lost."""
    publishers = plan.task.topology.senders
    _await(lambda: service.dynamic_config.number_of_publishers >= publishers)
    subscriber.receive()


def _await(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the other ends did not come")
        time.sleep(0.001)


def _sending(publisher: Any, plan: Plan) -> Callable[[bytes], object]:
    """In mode loan most messages are a stamp only; the sample has the full size all the same."""
    loan, move, size = publisher.loan_slice_uninit, ctypes.memmove, plan.task.size

    def send(message: bytes) -> object:
        sample = loan(size)
        move(sample.payload_ptr, message, len(message))
        return sample.assume_init().send()

    return send


def _receiving(subscriber: Any, plan: Plan) -> Callable[[], bytes | None]:
    receive, read, size = subscriber.receive, ctypes.string_at, plan.task.size

    def receive_copy() -> bytes | None:
        sample = receive()
        return None if sample is None else read(sample.payload_ptr, size)

    def receive_stamp() -> bytes | None:
        sample = receive()
        if sample is None:
            return None
        stamp = read(sample.payload_ptr, STAMP_BYTES)
        return read(sample.payload_ptr, size) if stamp in full else stamp

    full = {
        plan.payload.messages(sender)[0][:STAMP_BYTES]
        for sender in range(plan.task.topology.senders)
    }
    return receive_stamp if plan.task.mode == "loan" else receive_copy


PEERS: tuple[Peer, ...] = (Iceoryx2(),)
