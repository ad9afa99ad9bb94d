"""A backup as its live sees it: how far it is, and whether it counts."""

from __future__ import annotations

from dataclasses import dataclass

from shmbroker.netbridge.election.question import Copy


@dataclass(slots=True)
class Follower:
    copy: Copy
    stream: int
    since: float
    """When it joined, or got on last while it was behind."""
    has: int = 0
    """It has confirmed all frames up to this number."""
    can_count: bool = False
    """Frames reach it as they are written, so confirms can wait for it."""
    is_announced: bool = False
    """It was told that it is in sync."""
    is_leaving: bool = False

    @property
    def member(self) -> str:
        return self.copy.member

    def gets_on(self, number: int, now: float) -> None:
        if number > self.has:
            self.has, self.since = number, now
