"""What a consumer of a session has in hand, and the credit that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field

from shmbroker.netbridge.remote.broken import SessionBroken
from shmbroker.netbridge.wire.frame import Grant


@dataclass(slots=True)
class Prefetched:
    target: int
    prefetch: int
    """Messages that may be in hand; 0: as many as are asked for."""
    bytes_max: int
    in_hand: dict[int, int] = field(default_factory=dict)
    """By delivery: its bytes."""
    came: int = 0
    settled: int = 0
    settled_bytes: int = 0
    wanted: int = 0
    told: tuple[int, int] = (0, 0)

    @property
    def granted(self) -> tuple[int, int]:
        messages = self.settled + self.prefetch if self.prefetch else self.wanted
        return messages, self.settled_bytes + self.bytes_max

    def take(self, first: int, messages: int, size: int) -> None:
        self.came += messages
        if self.came > self.told[0]:
            raise SessionBroken(f"consumer {self.target} gets more than it has asked for")
        share, rest = divmod(size, messages)
        self.in_hand.update(dict.fromkeys(range(first, first + messages), share))
        self.in_hand[first] += rest

    def settle(self, delivery: int) -> None:
        self.settled += 1
        self.settled_bytes += self.in_hand.pop(delivery)

    def again(self) -> None:
        """In another session nothing is in hand."""
        self.in_hand.clear()
        self.came = self.settled = self.settled_bytes = self.wanted = 0
        self.told = (0, 0)

    def news(self) -> Grant | None:
        """As soon as a quarter of the window is free, or nothing is in hand."""
        messages, size = self.granted
        if (messages, size) == self.told:
            return None
        step = messages - self.told[0] < max(1, self.prefetch // 4)
        step &= size - self.told[1] < self.bytes_max // 4
        if step and self.in_hand:
            return None
        return self.telling()

    def telling(self) -> Grant:
        self.told = self.granted
        return Grant(self.target, *self.told)
