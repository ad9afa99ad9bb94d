"""The rings of a run, and which of them a seat sends to and receives from.

Owners: a number of its own for each process, as a broker would hand them out.
"""

from dataclasses import dataclass

from shmbroker import Ring
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.tally import LARGE_BYTES
from shmbroker.perf.harness.topology import Seat
from shmbroker.perf.machine.workspace import Workspace

SLOTS, ARENA_BYTES = 1024, 64 << 20
"""256, 1024 and 4096 slots were measured to be alike, within 5 %, one to one, three to one and
competing. 1024 slots are 64 KiB, which stay in the second-level cache, and more than enough for
what a process does in the time that it has the core when processes take turns."""

SLOTS_LARGE, ARENA_BYTES_LARGE = 16, 128 << 20

_FIRST_OWNER = {"initiator": 1, "responder": 2, "sender": 10, "receiver": 20}


@dataclass(frozen=True, slots=True)
class Lanes:
    """The names of the rings, whatever else a child needs to know of them."""

    forth: str
    back: str | None = None
    """The ring of replies."""
    vhost: str = ""
    """Where they are queues; "" if they are rings by themselves."""

    def names(self) -> list[str]:
        return [self.forth] + ([self.back] if self.back else [])

    def of(self, seat: Seat) -> tuple[str | None, str | None]:
        """The rings that this seat publishes to and takes from."""
        return {
            "initiator": (self.forth, self.back),
            "responder": (self.back, self.forth),
            "sender": (self.forth, None),
            "receiver": (None, self.forth),
        }[seat.role]


def owner_of(seat: Seat) -> int:
    return _FIRST_OWNER[seat.role] + seat.index


def geometry(plan: Plan) -> tuple[int, int]:
    """Slots of a ring, and bytes of its arena."""
    if plan.task.size >= LARGE_BYTES:
        return SLOTS_LARGE, ARENA_BYTES_LARGE
    return SLOTS, ARENA_BYTES


def make_lanes(plan: Plan, workspace: Workspace) -> Lanes:
    """Create the rings of a run, closed again; the caller removes them."""
    topology = plan.task.topology
    back = f"{workspace.token}-back" if topology.measures_latency else None
    lanes = Lanes(f"{workspace.token}-forth", back)
    slots, arena_bytes = geometry(plan)
    broadcast = topology.delivery == "to-all"
    for name in lanes.names():
        Ring.create(name, slots, arena_bytes, broadcast=broadcast).close()
    return lanes


def remove_lanes(lanes: Lanes) -> None:
    for name in lanes.names():
        Ring.remove(name)
