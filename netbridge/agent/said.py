"""What the two ends of an agent's link tell each other, before anything is shipped.

agent ──► Joins ──► the other broker declares its exchange ──► Joined
                                                          └──► Apart, and why
and then, if it forwards, it ships what waits; if it subscribes
agent ──► Wants ──► the other broker binds a queue, and ships that ──► Bound
and if it does both, it ships once it was told so: what goes there is to come back
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Joins:
    """An exchange of the agent's broker, to the one of this name there."""

    exchange: str
    kind: str


@dataclass(frozen=True, slots=True)
class Joined:
    """It is there, and of the same kind."""


@dataclass(frozen=True, slots=True)
class Apart:
    """It cannot be joined."""

    why: str


@dataclass(frozen=True, slots=True, order=True)
class Wanted:
    """A binding, as it is at the broker that wants."""

    key: str
    arguments: bytes
    """A MessagePack map, or nothing."""
    matches_any: bool


@dataclass(frozen=True, slots=True)
class Wants:
    """The difference to what was said before over the same connection, or a page of it."""

    hops: int
    is_whole: bool
    """No page of the same difference comes behind it."""
    bindings: tuple[Wanted, ...] = ()
    gone: tuple[Wanted, ...] = ()


@dataclass(frozen=True, slots=True)
class Bound:
    """What is wanted is bound, for the first time over this connection."""


Said = Joins | Joined | Apart | Wants | Bound
