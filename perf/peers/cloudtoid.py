"""cloudtoid-interprocess: a byte queue in shared memory with a Rust core.

try_send / try_receive, polled: measured here against the blocking receive(), a round trip of
0.36 against 60 µs, and the faster one in every topology. try_send_batch is its only batch call;
receiving has none. The capacity is the best of 16 KiB to 1 MiB on these tasks (they differ by
a few percent); its mapped file lies on /dev/shm, not in the default /tmp, which may be a disk.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.port import Port
from shmbroker.perf.harness.python_peer import PythonPeer
from shmbroker.perf.harness.tally import LARGE_BYTES
from shmbroker.perf.harness.task import Task
from shmbroker.perf.harness.topology import Seat
from shmbroker.perf.machine.workspace import Workspace

CAPACITY = 256 << 10
CAPACITY_LARGE = 8  # messages


@dataclass(frozen=True, slots=True)
class Queues:
    name: str
    capacity: int
    path: str


class Cloudtoid(PythonPeer):
    name = "cloudtoid"
    distribution = "cloudtoid-interprocess"
    module = "cloudtoid_interprocess"

    def supports(self, task: Task) -> bool:
        if task.topology.delivery == "to-all":
            return False
        if task.mode == "batch":
            return not task.topology.measures_latency and task.size < LARGE_BYTES
        return task.mode == "single"

    def setup(self, plan: Plan, workspace: Workspace) -> Queues:
        capacity = CAPACITY
        if plan.task.size >= LARGE_BYTES:
            capacity = CAPACITY_LARGE * (plan.task.size + 64)
        return Queues(workspace.token, capacity, str(workspace.directory))

    def open_port(self, seat: Seat, endpoint: Queues, plan: Plan) -> Port:
        library = import_module("cloudtoid_interprocess")
        forth, back = f"{endpoint.name}-forth", f"{endpoint.name}-back"
        if seat.role == "responder":
            forth, back = back, forth
        if seat.role == "receiver":
            back = forth
        ends: list[Any] = []

        def opened(kind: Any, name: str) -> Any:
            ends.append(kind(name, endpoint.capacity, endpoint.path))
            return ends[-1]

        def close() -> None:
            for end in ends:
                end.close()

        calls: dict[str, Any] = {"close": close}
        if seat.role != "receiver":
            publisher = opened(library.Publisher, forth)
            calls |= {"send": publisher.try_send, "send_many": publisher.try_send_batch}
        if seat.role != "sender":
            calls["receive"] = opened(library.Subscriber, back).try_receive
        return Port(**calls)


PEERS: tuple[Peer, ...] = (Cloudtoid(),)
