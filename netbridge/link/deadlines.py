"""Who of many is to be woken, and when: the first of them is known without asking the others.

A time that became later is found when the earlier one comes, so traffic, which moves a heartbeat
again and again, costs a look into a table.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Generic, TypeVar

T = TypeVar("T")
NEVER: Final = float("inf")
STALE_MAX: Final = 64
"""Entries that count no more; beyond it, as many as those that do."""


class Deadlines(Generic[T]):
    def __init__(self, due: Callable[[T], float]) -> None:
        """`due`: of one of them, as it is now."""
        self._due = due
        self._at: dict[T, float] = {}
        """Not later than it is due."""
        self._heap: list[tuple[float, int, T]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._heap)

    def look(self, member: T) -> None:
        """It is new, or its time has changed."""
        at = self._due(member)
        if at < self._at.get(member, NEVER):
            self._at[member] = at
            heappush(self._heap, (at, next(self._numbers), member))

    def drop(self, member: T) -> None:
        """It is not to be woken any more."""
        if self._at.pop(member, None) is not None and self._is_stale:
            self._heap = [each for each in self._heap if self._counts(each)]
            heapify(self._heap)

    @property
    def _is_stale(self) -> bool:
        return len(self._heap) > 2 * len(self._at) + STALE_MAX

    def _counts(self, entry: tuple[float, int, T]) -> bool:
        return self._at.get(entry[2]) == entry[0]

    @property
    def first(self) -> float:
        """Nobody is due before it."""
        while self._heap and not self._counts(self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else NEVER

    def late(self, now: float) -> list[T]:
        """Those who are due.  Look at each again when it was woken."""
        found: list[T] = []
        while self.first <= now:
            member = heappop(self._heap)[2]
            del self._at[member]
            if self._due(member) <= now:
                found.append(member)
            else:
                self.look(member)
        return found
