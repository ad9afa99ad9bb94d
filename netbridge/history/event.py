"""What happened at clients: each call with when it was made and how it ended.

Times are of one clock.  A call without an answer is UNKNOWN, and ends never.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from shmbroker.netbridge.wire.words import Level

NEVER: Final = float("inf")


class Outcome(Enum):
    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Answered:
    """Who gave the answer."""

    member: str
    epoch: int
    level: Level


@dataclass(frozen=True, slots=True)
class Call:
    began: float
    ended: float = NEVER
    outcome: Outcome = Outcome.UNKNOWN
    answered: Answered | None = None
    asked: Level | None = None
    """A level by name; None: the one that the queue has."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue that is deleted and made again is another one."""

    name: str
    incarnation: int = 0


@dataclass(frozen=True, slots=True)
class Publish:
    call: Call
    queue: Queue
    message: str
    producer: str
    number: int
    """Of the producer: later messages have higher ones."""


@dataclass(frozen=True, slots=True)
class Delivery:
    time: float
    queue: Queue
    message: str
    is_redelivered: bool


@dataclass(frozen=True, slots=True)
class Ack:
    call: Call
    queue: Queue
    message: str


@dataclass(frozen=True, slots=True)
class Commit:
    """Messages that are published and acknowledged together."""

    call: Call
    puts: tuple[tuple[Queue, str], ...]
    acks: tuple[tuple[Queue, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    call: Call
    queue: Queue


Event = Publish | Delivery | Ack | Commit | Delete


@dataclass(slots=True)
class History:
    events: list[Event] = field(default_factory=list)
    remains: Mapping[Queue, Sequence[str]] = field(default_factory=dict)
    """What is in each queue in the end, in order, when everything has healed."""
    set_aside: frozenset[str] = frozenset()
    """Messages in tails that were set aside, and whose loss was told to a person."""
    disk_alone_lasts: bool = False
    """What was confirmed on one disk, because a client asked for no more, has to be there.

    False after a takeover: such a message may be on the old live's disk only.
    """
