"""The gate of a run: all processes start together, and none closes before all are through."""

from collections.abc import MutableSequence
from multiprocessing.context import ForkContext, SpawnContext
from multiprocessing.synchronize import Barrier

Context = SpawnContext | ForkContext

PATIENCE_S = 60
"""Only a second net: the run's watchdog ends processes that wait longer than the run may."""


class Gate:
    """Made by the parent, handed to every child. ``run_role`` must call start, then finish."""

    def __init__(self, context: Context, seats: int, receivers: int) -> None:
        self._barrier: Barrier = context.Barrier(seats)
        self._left: MutableSequence[int] = context.RawArray("b", receivers)

    def start(self) -> None:
        """Wait until everybody has opened its ends; start the clock after it returns."""
        self._barrier.wait(PATIENCE_S)

    def finish(self) -> None:
        """Wait until everybody has all its messages; close the ends after it returns."""
        self._barrier.wait(PATIENCE_S)

    def leave(self, receiver: int) -> None:
        """A competing receiver has got its stop message."""
        self._left[receiver] = 1

    def missing(self) -> int:
        """Competing receivers that have not got a stop message yet."""
        return len(self._left) - sum(self._left)
