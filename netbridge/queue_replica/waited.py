"""Which replicas the confirms of one queue wait for, and what these have.

A replica counts from the first moment that it has shown, until it leaves, or owes an answer for too
long; then with the next moment that it has shown.  Of more than are wanted the furthest count, and
of fewer all there are: none holds up a publisher for longer than it may owe an answer.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

NEVER: Final = float("inf")
NONE: Final = -1


@dataclass(slots=True)
class _Replica:
    below: int = 0
    """It has all below this position."""
    counts: bool = False
    owes_since: float = NEVER


class Waited:
    """Of one queue; replicas are known by whatever `who` is."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self._replicas: dict[Hashable, _Replica] = {}

    def came(self, who: Hashable) -> None:
        self._replicas[who] = _Replica()

    def sent(self, who: Hashable, now: float) -> None:
        """Something that it is to answer."""
        found = self._replicas[who]
        found.owes_since = min(found.owes_since, now)

    def answered(self, who: Hashable, now: float, *, owes: bool) -> None:
        """It is not done yet if it owes more."""
        self._replicas[who].owes_since = now if owes else NEVER

    def shown(self, who: Hashable, below: int) -> None:
        found = self._replicas[who]
        found.below, found.counts = max(found.below, below), True

    def gone(self, who: Hashable) -> None:
        self._replicas.pop(who, None)

    @property
    def is_empty(self) -> bool:
        return not self._replicas

    def due(self, timeout: float) -> float:
        """When one owes its answer for too long."""
        owing = (each.owes_since for each in self._replicas.values() if each.counts)
        return min(owing, default=NEVER) + timeout

    def late(self, now: float, timeout: float) -> list[Hashable]:
        """Those that count no more."""
        found = [who for who, each in self._replicas.items()
                 if each.counts and each.owes_since + timeout <= now]  # fmt: skip
        for who in found:
            self._replicas[who].counts = False
        return found

    @property
    def below(self) -> int:
        """Confirms wait at this position; NONE: for nobody."""
        has = sorted((each.below for each in self._replicas.values() if each.counts), reverse=True)
        return has[min(self.wanted, len(has)) - 1] if has else NONE
