"""A task: what a peer is asked to do. A topology, a message size and a mode.

| mode     | how a message is handled                                                          |
|----------|-----------------------------------------------------------------------------------|
| single   | one call a message; the receiver ends up with its own copy, taken and acknowledged |
| combined | take, copy and acknowledge in one call                                            |
| batch    | many messages a call, wherever the library has such a call                        |
| loan     | zero-copy: stamped in the transport's memory, read there (see payload.py)         |
"""

from dataclasses import dataclass
from typing import Literal, get_args

from shmbroker.perf.harness.topology import Topology
from shmbroker.perf.machine.size import format_size

Mode = Literal["single", "combined", "batch", "loan"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Task:
    """Hashable and picklable; the same task is given to every peer that supports it."""

    topology: Topology
    size: int
    mode: Mode

    def __str__(self) -> str:
        return f"{self.topology.name}, {format_size(self.size)}, {self.mode}"
