"""Pauses between rounds: they grow up to a longest one, each with ten per cent of jitter."""

from __future__ import annotations

from collections.abc import MutableSequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

JITTER: Final = 0.1


class Chance(Protocol):
    """A seeded generator, as random.Random; machines are given one and make none."""

    def random(self) -> float: ...

    def shuffle(self, x: MutableSequence[Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds, and by how much they grow; a growth of 1 is none."""

    initial: float
    longest: float
    growth: float


class Pacing:
    def __init__(self, pace: Pace, chance: Chance) -> None:
        self._pace = pace
        self._chance = chance
        self._next = pace.initial

    def reset(self) -> None:
        self._next = self._pace.initial

    def pause(self) -> float:
        """After one more failed round; never longer than the longest."""
        pause = self._next * (1 + JITTER * (2 * self._chance.random() - 1))
        self._next = min(self._next * self._pace.growth, self._pace.longest)
        return min(pause, self._pace.longest)
