"""A peer that is driven call by call from Python, by the loops that all such peers share."""

import gc
import os
from abc import abstractmethod
from typing import ClassVar

from shmbroker.perf.harness.gate import Gate
from shmbroker.perf.harness.loops import LOOPS
from shmbroker.perf.harness.peer import Endpoint, Kind, Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.port import Port
from shmbroker.perf.harness.role_result import RoleResult
from shmbroker.perf.harness.topology import Seat


class PythonPeer(Peer):
    """Subclasses say how to open a port; the rest is the same for all of them."""

    kind: ClassVar[Kind] = "python"

    @abstractmethod
    def open_port(self, seat: Seat, endpoint: Endpoint, plan: Plan) -> Port:
        """Child: open this seat's ends, both of them in ping-pong."""

    def run_role(self, seat: Seat, endpoint: Endpoint, plan: Plan, gate: Gate) -> RoleResult:
        port = self.open_port(seat, endpoint, plan)
        relax = os.sched_yield if plan.crowded else None
        gc.disable()  # a collection of the harness's own lists is nobody's latency
        try:
            result = LOOPS[seat.role](port, seat, plan, gate, relax)
            gate.finish()
            return result
        finally:
            gc.enable()
            port.close()
