"""Pretended time, what happens next in it, and the randomness of a seed."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random

STEPS_MAX = 200_000
Step = Callable[[], None]


class Wrong(Exception):
    """Something that must be true is not."""


class World:
    def __init__(self, seed: int, *, is_traced: bool = False) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self._queue: list[tuple[float, int, Step]] = []
        self._count = 0
        self.steps = 0
        self.trace: list[str] | None = [] if is_traced else None
        """What happened, if somebody wants to read it."""

    def at(self, time: float, step: Step) -> None:
        """Of two steps at one time the one that was asked for first comes first."""
        self._count += 1
        heapq.heappush(self._queue, (max(time, self.now), self._count, step))

    def later(self, seconds: float, step: Step) -> None:
        self.at(self.now + seconds, step)

    def between(self, low: float, high: float) -> float:
        return self.random.uniform(low, high)

    def run(self, until: float) -> None:
        while self._queue and self._queue[0][0] <= until:
            self.now, _, step = heapq.heappop(self._queue)
            step()
            self.steps += 1
            if self.steps > STEPS_MAX:
                raise Wrong(f"it does not come to rest: {STEPS_MAX} steps until {self.now:.3f} s")
        self.now = until

    def tell(self, text: str) -> None:
        if self.trace is not None:
            self.trace.append(f"{self.now:9.4f}  {text}")
