"""A queue in the memory of a broker: an original, or a replica."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from shmbroker.netbridge.queue_replica.source import Source

SLOTS: Final = 24
NO_VERSION: Final = -1
"""Nothing was shown yet."""
PART: Final = -2
"""Its broker died while it showed a moment."""

Storing = Callable[[], None]
"""Called before each word that is stored: whoever dies, dies here."""


@dataclass(eq=False, slots=True)
class Queue:
    name: str
    identity: bytes
    is_durable: bool = False
    slots: int = SLOTS
    head: int = 0
    tail: int = 0
    bodies: dict[int, int] = field(default_factory=dict)
    """The number of each message from head on, also of those that are done with."""
    done: set[int] = field(default_factory=set)
    """From head on."""
    follows: Source | None = None
    is_deletable: bool = False
    version: int = NO_VERSION
    """Of the original that a replica shows; see watch.py."""

    @property
    def content(self) -> dict[int, int]:
        """As a browser sees it: numbers by positions."""
        return {at: number for at, number in self.bodies.items() if at not in self.done}

    # --- an original --------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        return self.tail - self.head >= self.slots

    def publish(self, number: int) -> None:
        self.bodies[self.tail] = number
        self.tail += 1

    def retire(self, position: int) -> None:
        self.done.add(position)
        self.reclaim()

    def reclaim(self) -> None:
        while self.head < self.tail and self.head in self.done:
            self.done.remove(self.head)
            self.bodies.pop(self.head, None)
            self.head += 1

    # --- a replica, as core/replica.py has it -------------------------------------------------

    def begin(self, position: int) -> None:
        self.bodies.clear()
        self.done.clear()
        self.head = self.tail = position

    def _put(self, number: int | None) -> bool:
        """Nothing: a hole.  False: there is no slot."""
        self.reclaim()
        if self.is_full:
            return False
        if number is None:
            self.done.add(self.tail)
        else:
            self.bodies[self.tail] = number
        self.tail += 1
        return True

    def holes(self, position: int) -> bool:
        while self.tail < position:
            if not self._put(None):
                return False
        return True

    def place(self, position: int, number: int) -> bool:
        if not self.holes(position):
            return False
        return position != self.tail or self._put(number)

    def retire_below(self, head: int, storing: Storing) -> bool:
        for position in range(self.head, min(head, self.tail)):
            storing()
            self.done.add(position)
        self.reclaim()
        if head - self.tail >= self.slots:
            self.begin(head)
        is_there = self.holes(head)
        self.reclaim()
        return is_there

    def retire_all(self, done: frozenset[int], storing: Storing) -> None:
        for position in sorted(done):
            if self.head <= position < self.tail and position not in self.done:
                storing()
                self.done.add(position)
        self.reclaim()

    def has_revived(self, head: int, done: frozenset[int], end: int) -> bool:
        """Something is done with here, and not there."""
        return any(
            position not in done and (position < self.head or position in self.done)
            for position in range(head, min(end, self.tail))
        )
