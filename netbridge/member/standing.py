"""What a member's journal says about it: where it ends, in which epoch, and who was in sync."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import Copy, Node


class State(Enum):
    STARTING = "starting"
    JOINING = "joining"
    WAITING = "waiting"
    REFUSED = "refused"
    SYNCING = "syncing"
    IN_SYNC = "in sync"
    ASKING = "asking"
    HELD = "held"
    PARKED = "parked"
    PROMOTING = "promoting"
    BEGINNING = "beginning"
    LIVE = "live"
    ALONE = "alone"
    SUSPENDED = "suspended"
    HANDING_OVER = "handing over"
    FENCED = "fenced"
    CONFLICT = "conflict"
    LEAVING = "leaving"
    STOPPED = "stopped"
    FAILED = "failed"


SERVING: Final = frozenset({State.LIVE, State.ALONE, State.SUSPENDED, State.HANDING_OVER})
"""It is the live of its epoch, though perhaps it may not confirm."""
FOLLOWING: Final = frozenset({State.SYNCING, State.IN_SYNC})
ENDING: Final = frozenset({State.LEAVING, State.STOPPED, State.FAILED})
LOOKING: Final = frozenset(
    {
        State.JOINING, State.WAITING, State.REFUSED, State.HELD, State.PARKED, State.FENCED,
        State.ASKING,
    }
)  # fmt: skip
"""It joins a live that it meets.  Who is refused by one member may be welcome at another."""


@dataclass(frozen=True, slots=True)
class Position:
    """The last frame.  Epoch and number alone prove nothing; the chain does."""

    epoch: int = 0
    holder: str = ""
    number: int = 0
    chain: int = 0

    @property
    def age(self) -> tuple[int, int]:
        return self.epoch, self.number


@dataclass(frozen=True, slots=True)
class Began:
    """The first record of an epoch."""

    epoch: int
    holder: str
    copies: tuple[Copy, ...]
    is_forced: bool = False


@dataclass(frozen=True, slots=True)
class Copies:
    """The in-sync list, from this number on."""

    copies: tuple[Copy, ...]


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The live has stopped in good order; this member goes on."""

    to: str


@dataclass(frozen=True, slots=True)
class Parked:
    """The live has stopped in good order, and nobody goes on until it is back."""

    all_know: bool = False
    """Everybody on the list has it: who wrote it serves again without meeting them, where nobody
    can be asked."""


@dataclass(frozen=True, slots=True)
class Voted:
    """What this node's live has granted to members of other nodes of its cluster: all of it."""

    ledgers: tuple[tuple[Node, Ledger], ...]


Record = Began | Copies | HandedOver | Parked | Voted


@dataclass(frozen=True, slots=True)
class Past:
    """What a member finds in its journal when it starts."""

    node: bytes = b""
    """Empty: the journal is new."""
    last: Position = Position()
    copies: tuple[Copy, ...] = ()
    """The newest in-sync list."""
    is_whole: bool = True
    """False: half a copy of somebody else's data."""
    has_left: bool = False
    """Its own record: it left the in-sync set in good order."""
    handed_to: str = ""
    is_parked: bool = False
    all_know: bool = False
    """Of `Parked`."""
    is_forced: bool = False
    has_drained: bool = False
    """All that it has is at another node."""
    is_closed: bool = False
    """Its epoch began with nothing, after that."""

    @property
    def is_new(self) -> bool:
        return not self.last.epoch and self.is_whole
