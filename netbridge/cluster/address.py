"""`address`: which queues and exchanges a cluster is for, by the beginning of their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EXCLUDES: Final = "!"


@dataclass(frozen=True, slots=True)
class Addresses:
    included: tuple[str, ...] = ()
    """None: all."""
    excluded: tuple[str, ...] = ()
    """These win."""

    @classmethod
    def parse(cls, text: str) -> Addresses:
        """A list with commas; ValueError."""
        words = [each.strip() for each in text.split(",")] if text.strip() else []
        if not all(each.removeprefix(EXCLUDES) for each in words):
            raise ValueError('prefixes with commas, as in "orders,stock.,!orders.local"')
        excluded = tuple(each[1:] for each in words if each.startswith(EXCLUDES))
        return cls(tuple(each for each in words if not each.startswith(EXCLUDES)), excluded)

    def has(self, name: str) -> bool:
        is_included = not self.included or name.startswith(self.included)
        return is_included and not name.startswith(self.excluded)
