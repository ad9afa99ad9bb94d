"""How many voters have to say yes.

Witnesses: a majority of them.  Lives of a cluster: the others vote, and of n lives n/2 + 1 of the
others have to say yes, rounded down; of two the other one.  n is the largest number of lives that
was ever seen, so lives that are gone count.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

IMPOSSIBLE: Final = 1 << 30
"""So many never say yes."""


def of_witnesses(count: int) -> int:
    return count // 2 + 1


def of_lives(lives: int) -> int:
    if lives < 2:
        return IMPOSSIBLE
    return 1 if lives == 2 else lives // 2 + 1


@dataclass(frozen=True, slots=True)
class Quorum:
    """What a member knows of the lives in its cluster."""

    size: int = -1
    """As configured; -1: as many as were ever seen.  The larger of both counts."""
    recalculates: bool = True
    """A restart of all remaining brokers lowers it; False: only `cluster forget`."""
    seen_max: int = 1
    seen: frozenset[str] = frozenset()
    """Node ids of the lives that were seen since this broker started, its own included."""
    gone: frozenset[str] = frozenset()
    """Node ids of those that were counted off: each is so once, however often that is said."""

    @property
    def lives(self) -> int:
        return max(self.seen_max, self.size)

    @property
    def needed(self) -> int:
        return of_lives(self.lives)

    def sees(self, nodes: Collection[str]) -> Quorum:
        """One that was counted off counts again."""
        seen, back = self.seen | frozenset(nodes), self.gone & frozenset(nodes)
        seen_max = max(self.seen_max + len(back), len(seen))
        return replace(self, seen=seen, seen_max=seen_max, gone=self.gone - back)

    def forgets(self, node: str) -> Quorum:
        """By command: this node is no more, and counts no longer, if it did."""
        seen = self.seen - {node}
        if node in self.gone or self.seen_max <= max(1, len(seen)):
            return replace(self, seen=seen)
        return replace(self, seen=seen, seen_max=self.seen_max - 1, gone=self.gone | {node})

    def restarted(self) -> Quorum:
        """This broker starts again.  It learns from the others how many they count."""
        if self.recalculates:
            return Quorum(self.size)
        return replace(self, seen=frozenset())

    def told(self, lives: int) -> Quorum:
        """Another live counts so many: while one that was not restarted is there, nothing falls."""
        return replace(self, seen_max=max(self.seen_max, lives))
