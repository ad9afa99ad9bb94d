"""shmbroker from C: perf/native, compiled as a user does it, with pkg-config."""

import ctypes

from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.machine.client import compiled_client
from shmbroker.perf.ours.compiled_peer import CompiledLoop, CompiledPeer, LoopName
from shmbroker.perf.ours.job import Job


class OursC(CompiledPeer):
    name = "shmbroker-c"
    kind = "c"

    def prepare(self, plan: Plan) -> str:
        return compiled_client("stream.c", "ping_pong.c")

    def load(self, name: LoopName, made: str) -> CompiledLoop:
        function = ctypes.CDLL(made)[f"ours_{name}"]
        function.restype = ctypes.c_int64

        def loop(job: Job) -> int:
            return int(function(job.for_c()))

        return loop


PEERS: tuple[Peer, ...] = (OursC(),)
