"""A producer of a session: its numbers, and those of which nobody knows what became of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from shmbroker.netbridge.remote.call import Call
from shmbroker.netbridge.remote.numbers import OPEN_MAX
from shmbroker.netbridge.remote.outcome import Token


@dataclass(slots=True)
class Producing:
    next: int = 1
    is_open: bool = True
    """At the broker of this session."""
    is_left: bool = False
    """It stays only until nothing of it is unknown."""
    unknown: dict[Token, Call] = field(default_factory=dict)
    void: list[range] = field(default_factory=list)
    """Refused: they will not come again, and the broker does not know it yet."""

    @property
    def open(self) -> int:
        return sum(token.count for token in self.unknown)

    def may_publish(self, call: Call) -> bool:
        """New numbers wait while too many are open; a retry has its number."""
        return bool(call.value) or self.open + call.count <= OPEN_MAX or not self.unknown

    def number(self, call: Call) -> None:
        if not call.value:
            call.value = self.next
            self.next += call.count

    def floor(self, calls: list[Call]) -> int:
        """Of all numbers below it is known what became of them."""
        lowest = [call.value for call in (*calls, *self.unknown.values()) if call.value]
        return min([self.next, *lowest])
