"""Our compiled peers: the rings are opened in Python, the loops run without it."""

import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from shmbroker import Ring
from shmbroker.ipc.base.errors import error_for
from shmbroker.perf.harness.gate import Gate
from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.role_result import Checksum, RoleResult
from shmbroker.perf.harness.tally import LARGE_BYTES, MessageDamaged
from shmbroker.perf.harness.task import Task
from shmbroker.perf.harness.topology import Role, Seat
from shmbroker.perf.machine.workspace import Workspace
from shmbroker.perf.ours.job import Buffers, Job, buffers_of, job_of
from shmbroker.perf.ours.lanes import Lanes, make_lanes, owner_of, remove_lanes
from shmbroker.perf.ours.stopping import stop_receivers

DIFFERENT = -1000
"""What a loop returns that received something else than what was sent (native/tally.h)."""

LoopName = Literal["initiate", "respond", "send", "receive", "subscribe"]
LOOP_NAMES: dict[Role, LoopName] = {
    "initiator": "initiate",
    "responder": "respond",
    "sender": "send",
    "receiver": "receive",
}

CompiledLoop = Callable[[Job], int]
"""Does the job, and fills in what is on the buffers; a negative code if it could not be done."""

_now = time.perf_counter_ns


@dataclass(frozen=True, slots=True)
class CompiledEndpoint:
    """``made`` is what ``prepare`` returned."""

    lanes: Lanes
    made: Any


class CompiledPeer(Peer):
    """Subclasses say how their loops are compiled and loaded."""

    distribution = "shmbroker"

    @abstractmethod
    def prepare(self, plan: Plan) -> Any:
        """Parent: compile, so that the children need only load."""

    @abstractmethod
    def load(self, name: LoopName, made: Any) -> CompiledLoop:
        """Child, before the start: a loop, ready to run."""

    def supports(self, task: Task) -> bool:
        topology = task.topology
        if task.mode == "batch":
            return not topology.measures_latency and task.size < LARGE_BYTES
        return task.mode != "combined" or topology.delivery != "to-all"

    def setup(self, plan: Plan, workspace: Workspace) -> CompiledEndpoint:
        made = self.prepare(plan)
        return CompiledEndpoint(make_lanes(plan, workspace), made)

    def teardown(self, endpoint: CompiledEndpoint) -> None:
        remove_lanes(endpoint.lanes)

    def run_role(
        self, seat: Seat, endpoint: CompiledEndpoint, plan: Plan, gate: Gate
    ) -> RoleResult:
        lanes, topology = endpoint.lanes, plan.task.topology
        rings = {name: Ring.attach(name) for name in lanes.names()}
        ports = {name: ring.port(owner_of(seat)) for name, ring in rings.items()}
        out, incoming = (ports.get(name or "") for name in lanes.of(seat))
        addresses = (port.address if port else 0 for port in (out, incoming))
        buffers = buffers_of(seat, plan)
        job = job_of(seat, plan, buffers, *addresses)
        loop = self.load(LOOP_NAMES[seat.role], endpoint.made)
        if job.subscribed and incoming:
            _checked(self.load("subscribe", endpoint.made)(job), seat)
        gate.start()
        result = _timed(loop, job, buffers, seat, plan)
        if topology.sharing and out:
            stop_receivers(out, gate)
        elif topology.sharing:
            gate.leave(seat.index)
        gate.finish()
        for ring in rings.values():
            ring.close()
        return result


def _timed(loop: CompiledLoop, job: Job, buffers: Buffers, seat: Seat, plan: Plan) -> RoleResult:
    started = _now()
    code = loop(job)
    finished = _now()
    _checked(code, seat)
    if seat.role == "responder":
        return RoleResult(started, finished)
    if seat.role == "receiver":
        return RoleResult(started, buffers.finished_ns(), received=buffers.received())
    count = plan.round_trips or plan.count
    sent = Checksum(count, plan.payload.stamp_total(seat.index, count))
    if seat.role == "sender":
        return RoleResult(started, finished, sent)
    return RoleResult(
        started, finished, sent, buffers.received(), buffers.groups_ns, buffers.singles_ns
    )


def _checked(code: int, seat: Seat) -> None:
    if code == DIFFERENT:
        raise MessageDamaged("a message arrived that is not what was sent")
    if code < 0:
        raise error_for(code, f"{seat.role} {seat.index}")
