"""What an incarnation is told when it starts, and how it learns that it is to end."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from random import Random

import shmbroker
from tests.crash.journal import Journal

WORK, ONE, LEFT, RIGHT, WIDE = range(5)
QUEUES = {"work": 64, "one": 16, "left": 32, "right": 32, "wide": 256}
"""Slots by name; a queue's number is its place here."""
NAMES = tuple(QUEUES)
TOPIC = "events"
KEY = "eu.price"
BINDINGS = {"left": "eu.#", "right": "*.price"}
"""Patterns of the topic exchange: KEY matches both."""


@dataclass(frozen=True, slots=True)
class Part:
    vhost: str
    role: str
    identity: int
    folder: Path
    seed: int

    @property
    def journal(self) -> Path:
        return self.folder / f"{self.identity:05}.{self.role}"

    @property
    def errors(self) -> Path:
        return self.folder / f"{self.identity:05}.{self.role}.errors"


class Stage:
    """What a role written in Python needs."""

    def __init__(self, part: Part) -> None:
        self.identity = part.identity
        self.random = Random(part.seed)
        self.journal = Journal(part.journal)
        self.url = f"shm://{part.vhost}"
        self.name = f"{part.role}-{part.identity}"
        self.is_over = False
        self._before = signal.signal(signal.SIGTERM, self._end)

    def _end(self, _number: int, _frame: object) -> None:
        self.is_over = True

    def close(self) -> None:
        self.journal.close()
        signal.signal(signal.SIGTERM, self._before)

    def connect(self) -> shmbroker.Broker:
        return shmbroker.connect(self.url, name=self.name)
