"""Frames that were sent, and their bytes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    frames: Counter[str] = field(default_factory=Counter)
    """By the kind of what is said."""
    size: Counter[str] = field(default_factory=Counter)
    """Bytes of these."""

    def sent(self, kind: str, size: int) -> None:
        self.frames[kind] += 1
        self.size[kind] += size

    @property
    def messages(self) -> int:
        return self.frames.total()

    @property
    def bytes(self) -> int:
        return self.size.total()

    def times(self, count: float) -> Tally:
        """As often as this."""
        return Tally(
            Counter({kind: round(each * count) for kind, each in self.frames.items()}),
            Counter({kind: round(each * count) for kind, each in self.size.items()}),
        )
