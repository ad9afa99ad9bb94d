"""The raw bandwidth limit as a peer: memcpy of large messages (memcpy.c).

It sits in the receiver's seat of one to one; the sender's seat stays idle, so that the copying
process has the memory to itself.
"""

import ctypes
import time

import numpy as np

from shmbroker.perf.harness.gate import Gate
from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.role_result import Checksum, RoleResult
from shmbroker.perf.harness.tally import LARGE_BYTES
from shmbroker.perf.harness.task import Task
from shmbroker.perf.harness.topology import Seat
from shmbroker.perf.machine.compiler import compiled
from shmbroker.perf.machine.workspace import Workspace

TARGETS = 8
"""Buffers to copy to in turn: the room that peers have for large messages."""


class RawMemcpy(Peer):
    name = "raw-memcpy"
    kind = "c"
    is_limit = True

    def supports(self, task: Task) -> bool:
        large = task.size >= LARGE_BYTES
        return large and task.mode == "single" and task.topology.name == "one-to-one"

    def setup(self, plan: Plan, workspace: Workspace) -> str:
        return str(compiled("memcpy.c"))

    def run_role(self, seat: Seat, endpoint: str, plan: Plan, gate: Gate) -> RoleResult:
        total = plan.payload.stamp_total(0, plan.count)
        if seat.role == "sender":
            gate.start()
            started = time.perf_counter_ns()
            gate.finish()
            return RoleResult(started, started, sent=Checksum(plan.count, total))
        return _copy_all(ctypes.CDLL(endpoint), plan, gate)


def _copy_all(library: ctypes.CDLL, plan: Plan, gate: Gate) -> RoleResult:
    source = plan.payload.block(0)
    target = np.ones((TARGETS, plan.task.size), np.uint8)  # ones: written, so the pages exist
    lengths = (plan.task.size, plan.payload.period, TARGETS, plan.count)
    library.memcpy_stream.restype = ctypes.c_int64
    gate.start()
    started = time.perf_counter_ns()
    total = library.memcpy_stream(
        ctypes.c_void_p(source.ctypes.data),
        ctypes.c_void_p(target.ctypes.data),
        *(ctypes.c_int64(length) for length in lengths),
    )
    finished = time.perf_counter_ns()
    gate.finish()
    return RoleResult(started, finished, received=Checksum(plan.count, total))
