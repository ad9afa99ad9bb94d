"""What is to happen at a time, unless it has become needless before."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

NEVER = float("inf")


@dataclass(slots=True, order=True)
class Alarm:
    at: float
    number: int
    rings: Callable[[], None] | None = field(compare=False)

    def cancel(self) -> None:
        self.rings = None


class Alarms:
    def __init__(self) -> None:
        self._waiting: list[Alarm] = []
        self._set = 0

    def at(self, at: float, rings: Callable[[], None]) -> Alarm:
        self._set += 1
        alarm = Alarm(at, self._set, rings)
        if at < NEVER:
            heapq.heappush(self._waiting, alarm)
        return alarm

    @property
    def due(self) -> float:
        while self._waiting and self._waiting[0].rings is None:
            heapq.heappop(self._waiting)
        return self._waiting[0].at if self._waiting else NEVER

    def ring(self, now: float) -> None:
        while self.due <= now:
            rings = heapq.heappop(self._waiting).rings
            if rings is not None:
                rings()
