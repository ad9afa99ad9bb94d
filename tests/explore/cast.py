"""Who plays what in a scenario of a ring, and what they are allowed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tests.explore.scenario import View

EPILOGUE_OWNER: Final = 60
COMMITTER: Final = 1
NUMBERED: Final = 1
"""The one producer whose messages are numbered, where any are."""


@dataclass(frozen=True, slots=True)
class Cast:
    """Indices of the scenario's roles by their parts."""

    owners: tuple[int, ...]
    producers: tuple[int, ...] = ()
    consumers: tuple[int, ...] = ()
    cursors: tuple[int, ...] = ()
    leases_end: bool = False
    """A lease may run out, so a live consumer may be revoked."""
    gives_back: bool = False
    drops: bool = False
    """Messages that nobody has may be dropped, or done with once every cursor has seen them."""
    lossy: bool = False
    numbered: bool = False
    transaction: int = 0
    """How many messages the committer publishes together."""
    groups: tuple[int, ...] = ()
    """Of each position, in rings with groups; 0: none."""
    expected: int = 0
    """Messages that are published if nobody dies."""
    writers: dict[int, int] = field(default_factory=dict)
    """Whose messages each owner publishes, where they are not its own."""

    def group(self, number: int) -> int:
        return self.groups[number] if number < len(self.groups) else 0

    @property
    def has_threads(self) -> bool:
        """Several processes are one participant."""
        return len(set(self.owners)) < len(self.owners)

    def owner(self, actor: int) -> int:
        return self.owners[actor] if actor < len(self.owners) else EPILOGUE_OWNER

    def producer(self, owner: int) -> int:
        """Whose messages this owner publishes."""
        return self.writers.get(owner, owner)

    def is_dead(self, view: View, owner: int) -> bool:
        return any(view.killed(actor) for actor in self._of(owner))

    def is_stopped(self, view: View, owner: int) -> bool:
        return any(view.stopped(actor) for actor in self._of(owner))

    def is_harmed(self, view: View) -> bool:
        """Somebody was killed or stopped."""
        actors = range(len(self.owners))
        return any(view.killed(each) or view.stopped(each) for each in actors)

    def _of(self, owner: int) -> list[int]:
        return [actor for actor, each in enumerate(self.owners) if each == owner]
