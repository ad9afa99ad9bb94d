"""What one process of a run reports: what it sent, what it received, and when."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


def _nothing() -> NDArray[np.int64]:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Checksum:
    """How many messages, and the sum of their stamps."""

    count: int = 0
    stamp_total: int = 0

    def __add__(self, other: "Checksum") -> "Checksum":
        return Checksum(self.count + other.count, self.stamp_total + other.stamp_total)

    def __str__(self) -> str:
        return f"{self.count} messages with stamps adding up to {self.stamp_total}"


@dataclass(frozen=True, slots=True, eq=False)
class RoleResult:
    """Times are CLOCK_MONOTONIC, so they compare between processes."""

    started_ns: int
    finished_ns: int
    sent: Checksum = Checksum()
    received: Checksum = Checksum()
    groups_ns: NDArray[np.int64] = field(default_factory=_nothing)
    """Initiator only: the time of each whole group of GROUP_LENGTH round trips."""
    singles_ns: NDArray[np.int64] = field(default_factory=_nothing)
    """Initiator only: the time of each individually timed round trip."""
