"""What the two brokers say to each other, over one link for all queues that go the same way.

replica                                         original
Follow (a queue, and how far it is)      -->
                                         <--    Follows, or Unserved
                                         <--    records, in frames `Shipment`
                                         <--    Chained (it follows another one in turn)
                                         <--    Moment: with these it is at a moment
Shown (so many moments)                  -->
                                         <--    Counted: confirms wait for this replica
Has (so many bytes of records)           -->
Leave                                    -->
                                         <--    Unserved: it was deleted
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Why(Enum):
    """Why an original is not followed."""

    MISSING = "missing"
    """There is no such queue, or no more."""
    OFF = "off"
    """Its broker lets nobody follow."""
    UNFIT = "unfit"
    """It is a queue that cannot be followed."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A broker in a chain of replicas."""

    node: bytes
    name: str


Chain = tuple[Hop, ...]
CHAIN_MAX: Final = 8
"""So many brokers a message may pass from replica to replica."""


@dataclass(frozen=True, slots=True)
class Follow:
    number: int
    """Of the queue, as the replica counts."""
    queue: str
    identity: bytes
    """Of the queue that it has followed; nothing: of none yet."""
    next: int
    """It has all below this position."""


@dataclass(frozen=True, slots=True)
class Leave:
    number: int


@dataclass(frozen=True, slots=True)
class Has:
    bytes: int
    """Of records, since the link is there."""


@dataclass(frozen=True, slots=True)
class Shown:
    moments: int
    """Whole ones, since the link is there."""


@dataclass(frozen=True, slots=True)
class Follows:
    number: int
    identity: bytes
    begins: int
    """The position from which on records come."""
    slots: int
    apart_ns: int
    """Its time of day, less its monotonic time."""
    chain: Chain
    """Where it is, then what it follows in turn."""
    is_durable: bool


@dataclass(frozen=True, slots=True)
class Chained:
    """What is followed has another chain now."""

    number: int
    chain: Chain


@dataclass(frozen=True, slots=True)
class Unserved:
    number: int
    why: Why
    detail: str


@dataclass(frozen=True, slots=True)
class Moment:
    is_whole: bool
    """All that was sent is how the queues stood at one moment."""


@dataclass(frozen=True, slots=True)
class Counted:
    """It is heard that the replica has shown a moment: confirms that wait for replicas wait for
    this one from here on."""

    number: int


OfReplica = Follow | Leave | Has | Shown
OfOriginal = Follows | Chained | Unserved | Moment | Counted
