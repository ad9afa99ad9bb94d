"""What is in memory, and on a disk: each change is one record there.

It is in memory at once, and on the disk when it is synced; after a loss of power memory is what was
synced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.world import Step


class Copied(Protocol):
    def copied(self: Content) -> Content: ...


Content = TypeVar("Content", bound=Copied)


def nothing() -> None:
    """Nobody wants to know when it is synced."""


class Kept(Generic[Content]):
    def __init__(self, disk: Disk, memory: Content, synced: Content) -> None:
        self.disk = disk
        self.memory, self.synced = memory, synced
        self._unsynced = 0

    @property
    def is_synced(self) -> bool:
        return not self._unsynced

    def does(self, change: Callable[[Content], None], then: Step = nothing) -> None:
        """`then`: when it is synced."""
        change(self.memory)
        self._unsynced += 1

        def effect() -> None:
            self._unsynced -= 1
            change(self.synced)
            then()

        self.disk.write(effect)

    def when_synced(self, then: Step) -> None:
        """All that is there now."""
        self.does(lambda content: None, then)

    def loses_power(self) -> None:
        self.disk.loses_power()
        self._unsynced = 0
        self.memory = self.synced.copied()
