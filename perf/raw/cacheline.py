"""The raw latency limit as a peer: one cache line to and fro (cacheline.c)."""

import ctypes
import mmap
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shmbroker import perf
from shmbroker.perf.harness.gate import Gate
from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import GROUP_LENGTH, Plan
from shmbroker.perf.harness.role_result import Checksum, RoleResult
from shmbroker.perf.harness.task import Task
from shmbroker.perf.harness.topology import Seat
from shmbroker.perf.machine.compiler import compiled
from shmbroker.perf.machine.workspace import Workspace

_SIZE_MAX = 64
CLOCK = Path(perf.__file__).parent / "native" / "clock.h"


@dataclass(frozen=True, slots=True)
class Line:
    library: str
    segment: str


class RawCacheline(Peer):
    name = "raw-cacheline"
    kind = "c"
    is_limit = True
    source = "cacheline.c"

    def supports(self, task: Task) -> bool:
        return task.topology.measures_latency and task.mode == "single" and task.size <= _SIZE_MAX

    def setup(self, plan: Plan, workspace: Workspace) -> Line:
        segment = workspace.directory / "line"
        segment.write_bytes(bytes(mmap.PAGESIZE))
        return Line(str(compiled(self.source, headers=[CLOCK])), str(segment))

    def run_role(self, seat: Seat, endpoint: Line, plan: Plan, gate: Gate) -> RoleResult:
        library = ctypes.CDLL(endpoint.library)
        turn = _mapped(Path(endpoint.segment))
        gate.start()
        started = time.perf_counter_ns()
        if seat.role == "responder":
            library.cacheline_respond(turn, ctypes.c_int64(plan.round_trips))
            result = RoleResult(started, time.perf_counter_ns())
        else:
            result = _initiate(library, turn, plan, started)
        gate.finish()
        return result


class RawFutex(RawCacheline):
    """The limit of waiting asleep (futex.c)."""

    name = "raw-futex"
    source = "futex.c"


def _mapped(segment: Path) -> ctypes.Array[ctypes.c_char]:
    descriptor = os.open(segment, os.O_RDWR)
    try:
        memory = mmap.mmap(descriptor, mmap.PAGESIZE)
    finally:
        os.close(descriptor)
    return (ctypes.c_char * mmap.PAGESIZE).from_buffer(memory)


def _initiate(
    library: ctypes.CDLL, turn: ctypes.Array[ctypes.c_char], plan: Plan, started: int
) -> RoleResult:
    groups = np.zeros(plan.groups, np.int64)
    singles = np.zeros(plan.singles, np.int64)
    library.cacheline_initiate.restype = ctypes.c_uint64
    lengths = (plan.warmup, plan.groups, GROUP_LENGTH, plan.singles)
    total = library.cacheline_initiate(
        turn,
        *(ctypes.c_int64(length) for length in lengths),
        ctypes.c_void_p(groups.ctypes.data),
        ctypes.c_void_p(singles.ctypes.data),
    )
    trips = plan.round_trips
    sent = Checksum(trips, trips * (trips + 1))  # the replies are 2, 4, 6, ...
    finished = time.perf_counter_ns()
    return RoleResult(started, finished, sent, Checksum(trips, total), groups, singles)
