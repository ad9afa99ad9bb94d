"""The lease of a live: until when no voter can have granted a higher epoch.

A voter holds still for a whole lease after it received a renewal.  The live counts half a lease
after it sent that renewal, on a clock that counts time spent asleep.  So both clocks may differ in
rate by nearly a factor of two.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

OFF_SECONDS: Final = 0.15
"""How often the in-sync list is told where leases are off."""
LAPSED: Final = float("-inf")


@dataclass(slots=True)
class Lease:
    seconds: float
    """0: off; it is never valid."""
    needed: int
    """So many voters must hold still."""
    serial: int = 0
    due_at: float = LAPSED
    sent: dict[tuple[str, int], float] = field(default_factory=dict)
    until: dict[str, float] = field(default_factory=dict)
    versions: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By voter: of which epoch and in which version it has the in-sync list."""

    def renews(self, voters: list[str], now: float) -> int:
        """A renewal is sent to these; its serial."""
        self.serial += 1
        for voter in voters:
            self.sent[voter, self.serial] = now
        self.due_at = now + (self.seconds / 4 or OFF_SECONDS)
        return self.serial

    def renewed(self, voter: str, serial: int, epoch: int, version: int) -> None:
        sent = self.sent.pop((voter, serial), None)
        if sent is None:
            return  # of a connection that has ended since
        for key in [each for each in self.sent if each[0] == voter and each[1] < serial]:
            del self.sent[key]
        self.until[voter] = max(self.until.get(voter, LAPSED), sent + self.seconds / 2)
        self.versions[voter] = epoch, version

    def ended(self, voter: str) -> None:
        """The connection to it; for the voter that may be a release."""
        self.until.pop(voter, None)
        for key in [each for each in self.sent if each[0] == voter]:
            del self.sent[key]

    def voters_are(self, voters: Iterable[str]) -> None:
        """What others have does not count any more."""
        self.versions = {each: self.versions[each] for each in voters if each in self.versions}

    def clear(self) -> None:
        """It is live no more."""
        self.sent.clear()
        self.until.clear()
        self.versions.clear()
        self.due_at = LAPSED

    @property
    def valid_until(self) -> float:
        """So many voters as are needed hold still until then."""
        moments = sorted(self.until.values(), reverse=True)
        return moments[self.needed - 1] if len(moments) >= self.needed else LAPSED

    def is_valid(self, now: float) -> bool:
        return self.valid_until > now

    def is_told(self, epoch: int, version: int) -> bool:
        """A majority has this list or a later one."""
        told = sum(each >= (epoch, version) for each in self.versions.values())
        return told >= self.needed
