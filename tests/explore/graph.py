"""The states that were reached, and which step leads from each to which.

Kept as flat arrays of 32-bit state numbers, one row a state, so that tens of millions fit.  After a
search that came to its end, two questions about all states are answered by walking backwards:

    can it finish?     some way leads from here to the end of the run (without any further death)
    can each go on?    an actor that runs alone from here comes to a question or to its end: no
                       kernel call waits for somebody who may be stopped
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

NONE: Final = -1
BLOCK: Final = 1 << 16

Bits = npt.NDArray[np.bool_]
Edges = npt.NDArray[np.int32]


class Graph:
    """States by number, in the order of their discovery."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.edges = array("i")
        self.parents = array("i")
        self.actions = array("h")

    def add(self, parent: int, action: int) -> None:
        self.parents.append(parent)
        self.actions.append(action)

    def path(self, state: int) -> list[int]:
        """The actions that lead from the first state to this one."""
        actions = []
        while state > 0:
            actions.append(self.actions[state])
            state = self.parents[state]
        return actions[::-1]

    def first_stuck(self, good: bytearray, columns: Sequence[int] | None = None) -> int:
        """The first state from which no good state can be reached over these columns; or NONE."""
        rows: Edges = np.frombuffer(self.edges, dtype=np.int32).reshape(-1, self.columns)
        reached: Bits = np.frombuffer(good, dtype=np.uint8).astype(np.bool_)
        used = tuple(range(self.columns)) if columns is None else tuple(columns)
        starts = range(0, len(reached), BLOCK)
        changed = True
        while changed:
            changed = False
            for start in reversed(starts):
                changed |= _spread(rows, reached, used, start, min(start + BLOCK, len(reached)))
        stuck = np.flatnonzero(~reached)
        return int(stuck[0]) if len(stuck) else NONE


def _spread(rows: Edges, reached: Bits, columns: Sequence[int], start: int, end: int) -> bool:
    """Mark what leads to a marked state, within one block until nothing changes."""
    changed = False
    open_ = start + np.flatnonzero(~reached[start:end])
    while len(open_):
        found = np.zeros(len(open_), dtype=np.bool_)
        for column in columns:
            targets = rows[open_, column]
            found |= (targets != NONE) & reached[targets]
        if not found.any():
            break
        reached[open_[found]] = True
        open_ = open_[~found]
        changed = True
    return changed
