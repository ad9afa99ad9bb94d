"""What is shown of all queues: the rows, and which of them are new since a former reading."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

Row = dict[str, Any]
REMOVED_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Change:
    """What is new for somebody who has seen a former reading."""

    number: int
    is_whole: bool
    """It replaces all that was there."""
    rows: list[Row]
    removed: list[str]

    @property
    def is_empty(self) -> bool:
        return not (self.is_whole or self.rows or self.removed)


@dataclass(slots=True)
class Snapshot:
    """Pure: it is told each reading, and knows the differences."""

    number: int = 0
    rows: dict[str, Row] = field(default_factory=dict)
    _changed: dict[str, int] = field(default_factory=dict)
    _removed: list[tuple[int, str]] = field(default_factory=list)
    _oldest: int = 0
    """Who has seen an older reading gets all of them."""

    def take(self, found: dict[str, Row]) -> None:
        self.number += 1
        for name, row in found.items():
            if self.rows.get(name) != row:
                self._changed[name] = self.number
        for name in self.rows.keys() - found.keys():
            del self._changed[name]
            self._removed.append((self.number, name))
        self.rows = found
        if len(self._removed) > REMOVED_MAX:
            self._oldest, self._removed = self.number, []

    def since(self, number: int) -> Change:
        if number < self._oldest or number == 0:
            return Change(self.number, True, list(self.rows.values()), [])
        rows = [self.rows[name] for name, at in self._changed.items() if at > number]
        removed = {name for at, name in self._removed if at > number} - self.rows.keys()
        return Change(self.number, False, rows, sorted(removed))
