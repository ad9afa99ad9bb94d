"""The numbers of a producer: which have come, also out of their order.

Beside the highest number stand the lower ones that have not come.  A number does not count as seen
because a later one was.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

OPEN_MAX = 1000


class Verdict(Enum):
    NEW = "new"
    SEEN = "seen"
    WAITS = "too many lower numbers are open"


@dataclass(slots=True)
class Numbers:
    """As it stands in the log beside the messages."""

    highest: int = 0
    open: set[int] = field(default_factory=set)

    def verdict(self, number: int) -> Verdict:
        if number <= self.highest:
            return Verdict.NEW if number in self.open else Verdict.SEEN
        skipped = number - self.highest - 1
        return Verdict.WAITS if len(self.open) + skipped > OPEN_MAX else Verdict.NEW

    def take(self, number: int) -> None:
        """One with the message."""
        if number > self.highest:
            self.open.update(range(self.highest + 1, number))
            self.highest = number
        else:
            self.open.discard(number)

    def begin(self, floor: int) -> None:
        """Its producer knows of all numbers below this one what became of them."""
        self.highest = max(self.highest, floor - 1)
        self.open = {each for each in self.open if each >= floor}

    def decided(self, numbers: Iterable[int]) -> None:
        """These will not come again."""
        self.open.difference_update(numbers)

    def copy(self) -> Numbers:
        return Numbers(self.highest, set(self.open))
