"""What an engine has of a node, and what is asked of it.

    ledger     what a witness would keep on its disk (election/ledger.py)
    lease      who is live, and how often that member has renewed it

An engine either ends the lease of a member by itself (ZooKeeper: a session), or only keeps what was
renewed (PostgreSQL); then whoever wants to be live measures the lease by his own clock.  So it does
not matter what the clock of the engine's host says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from shmbroker.ipc.base.errors import Error
from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import Node


class EngineFailed(Error):
    """The engine cannot be asked at present; the message says where it is, and why."""


@dataclass(frozen=True, slots=True)
class Lease:
    holder: str
    renewals: int


@dataclass(frozen=True, slots=True)
class Seen:
    """One node, as it was when we looked."""

    ledger: Ledger | None
    """None: the engine does not know the node."""
    lease: Lease | None = None
    tag: Any = None
    """By which the engine knows whether it is so still."""


class LeaseStep(Enum):
    """What becomes of the lease."""

    STAYS = "stays"
    TAKEN = "taken"
    """By this member, or renewed."""
    FREED = "freed"
    IS_FREE = "is free"
    """It stays, and the write counts only if nobody has taken it meanwhile."""


class Engine(Protocol):
    """Of one thread at a time.  Each may raise EngineFailed."""

    place: str
    """For people, and the name of the voter."""
    shared: str
    """The same at all members, however each of them reaches its servers."""
    ends_leases: bool
    """By itself, when it does not hear of a member any more."""

    def open(self, wake: Callable[[], None]) -> None:
        """Reach it.  `wake`: from any thread, when something of a node may have changed."""

    @property
    def file(self) -> int | None:
        """A descriptor that is readable when there is word."""

    def take_word(self) -> bool:
        """What made the descriptor readable, and what came along with an answer: whether there was
        any.  EngineFailed if the engine is gone."""

    def look(self, node: Node) -> Seen: ...

    def change(self, node: Node, seen: Seen, ledger: Ledger, lease: LeaseStep) -> bool:
        """On its disks, as one; False: it was not as we have seen it any more."""

    def nodes(self) -> list[Node]:
        """That it knows."""

    def close(self) -> None:
        """Let go of it; a lease ends if the engine ends leases."""
