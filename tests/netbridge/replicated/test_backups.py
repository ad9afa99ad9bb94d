"""Nothing is confirmed without an end that stands for each replica that is counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from shmbroker.netbridge.replicated.backups import Backups


@dataclass
class Ends:
    """Of the journal."""

    standing: set[str]
    awaits: list[bool] = field(default_factory=list)

    def holds(self, members: frozenset[str]) -> bool:
        return members <= self.standing

    def awaits_backups(self, awaits: bool) -> None:
        self.awaits.append(awaits)


class Counting:
    """A machine."""

    def __init__(self, *members: str, is_withholding: bool = False) -> None:
        self.counted = frozenset(members)
        self._is_withholding = is_withholding

    def is_withholding(self, _: float) -> bool:
        return self._is_withholding


@dataclass
class Live:
    machine: Counting


@pytest.mark.parametrize(
    ("machine", "standing", "awaits"),
    [
        (Counting(), set(), False),
        (Counting("b"), {"b"}, False),
        (Counting("b"), set(), True),
        (Counting("b", "c"), {"c"}, True),
        (Counting("b", is_withholding=True), {"b"}, True),
    ],
)
def test_confirms_wait(machine: Counting, standing: set[str], awaits: bool) -> None:
    ends = Ends(standing)
    backups = Backups(cast("Any", Live(machine)))
    backups.hold_confirms(cast("Any", ends), 0.0)
    backups.count(cast("Any", ends))  # before a record
    assert ends.awaits == [awaits, awaits]
