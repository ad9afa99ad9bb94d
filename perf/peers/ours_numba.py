"""shmbroker from Numba: loops of one's own with the kernels inlined (perf/ours/numba_loops.py)."""

from importlib import import_module
from typing import Any

from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.ours.compiled_peer import LOOP_NAMES, CompiledLoop, CompiledPeer, LoopName
from shmbroker.perf.ours.job import Job


class OursNumba(CompiledPeer):
    name = "shmbroker-numba"
    kind = "numba"
    module = "numba"

    def prepare(self, plan: Plan) -> None:
        """Compiled into the cache on disk, where the children find it."""
        topology = plan.task.topology
        for seat in topology.seats():
            self.load(LOOP_NAMES[seat.role], None)
        if topology.delivery == "to-all":
            self.load("subscribe", None)

    def load(self, name: LoopName, made: None) -> CompiledLoop:
        typeof: Any = import_module("numba").typeof
        loop: Any = import_module("shmbroker.perf.ours.numba_loops").LOOPS[name]
        loop.compile((typeof(Job(*[0] * len(Job._fields))),))
        compiled: CompiledLoop = loop
        return compiled


PEERS: tuple[Peer, ...] = (OursNumba(),)
