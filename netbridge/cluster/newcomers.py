"""Which nodes of a cluster are new, so that programs are asked to go there: a decision.

A node that is missing for a moment, or whose backup takes over, is not: its programs go on there.
Nor are those that a broker meets just after its own start.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

AWAY_SECONDS: Final = 10.0
"""Whoever was missing for so long is new."""
SETTLING_SECONDS: Final = 3.0
"""So long a broker that has just begun meets those that were there before."""


class Newcomers:
    def __init__(self) -> None:
        self._there: frozenset[bytes] = frozenset()
        self._left: dict[bytes, float] = {}
        """Of those that are missing, since when."""
        self._settled_at: float | None = None

    def see(self, there: Iterable[bytes], now: float) -> frozenset[bytes]:
        """Those that are there from now on; of these the new ones."""
        nodes = frozenset(there)
        self._left = {node: at for node, at in self._left.items() if now < at + AWAY_SECONDS}
        came = nodes - self._there - self._left.keys()
        self._left |= dict.fromkeys(self._there - nodes, now)
        for node in nodes:
            self._left.pop(node, None)
        self._there = nodes
        if self._settled_at is None:
            self._settled_at = now + SETTLING_SECONDS
        return came if now >= self._settled_at else frozenset()


def share(programs: int, nodes: int) -> int:
    """Of the programs of one node, how many go to one that is new; so many nodes are there."""
    return programs // nodes
