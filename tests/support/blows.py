"""Random blows to brokers on hosts of their own, and consumers that come and go meanwhile."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random
from threading import Event
from typing import Protocol

from tests.support.counting import Programs
from tests.support.hosts import Rack
from tests.support.runs import Run

BLOW_SECONDS = 2.0
"""The longest."""


def seeds_of(text: str) -> list[int]:
    """3, or 1-50."""
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


class Runs(Protocol):
    def __getitem__(self, name: str) -> Run: ...


class HostBlows(ABC):
    def __init__(
        self, runs: Runs, names: Sequence[str], rack: Rack, programs: Programs, seed: int
    ) -> None:
        """`names`: of all brokers."""
        self._runs, self._names, self._rack, self._programs = runs, names, rack, programs
        self._random = Random(seed)
        self._consumers: dict[tuple[str, str], Event] = {}
        self.struck: list[str] = []

    @abstractmethod
    def start(self, name: str) -> None:
        """It is there again when this returns."""

    def close(self) -> None:
        self._programs.is_over.set()
        for each in self._consumers.values():
            each.set()

    def for_a_while(self) -> None:
        time.sleep(self._random.uniform(0, BLOW_SECONDS))

    # --- consumers ----------------------------------------------------------------------------

    def stays(self, name: str, queue: str) -> None:
        if (name, queue) not in self._consumers:
            self.comes_or_goes(name, queue)

    def comes_or_goes(self, name: str, queue: str) -> None:
        leaves = self._consumers.pop((name, queue), None)
        if leaves is not None:
            leaves.set()
            return
        leaves = self._consumers[name, queue] = Event()
        self._programs.consume(name, queue, leaves)

    # --- blows --------------------------------------------------------------------------------

    def on_process(self, kind: str, name: str) -> None:
        run = self._runs[name]
        if kind == "still":
            assert run.process is not None
            run.process.stop()
            self.for_a_while()
            run.process.go_on()
            return
        if kind == "kill":
            run.kill()
        else:
            run.stop()
        self.for_a_while()
        self.start(name)

    def on_network(self, kind: str, name: str) -> None:
        other = self._random.choice([each for each in self._names if each != name])
        if kind == "isolate":
            self._rack.isolate(name)
        elif kind == "lose":
            self._rack[name].loses(20)
        else:
            self._rack.cut(name, other, both_ways=kind == "cut")
        self.for_a_while()
        self._rack.heal()
