"""What a replica wants done."""

from __future__ import annotations

from dataclasses import dataclass

from shmbroker.netbridge.queue_replica.told import OfReplica


@dataclass(frozen=True, slots=True)
class Say:
    what: OfReplica


@dataclass(frozen=True, slots=True)
class Begin:
    """The queue becomes a replica of this one, empty at this position.

    With `saves` what is in it may be nowhere else: it was an ordinary queue, or a replica of
    another queue of the name.
    """

    identity: bytes
    position: int
    apart_ns: int
    saves: bool
    is_durable: bool
    """The original is: so is a queue that is made for it, unless somebody has said otherwise."""


@dataclass(frozen=True, slots=True)
class GoOn:
    """It is a replica of this queue already, and has what comes."""

    apart_ns: int


@dataclass(frozen=True, slots=True)
class LetDelete:
    """Whether anybody may delete it."""

    is_deletable: bool


@dataclass(frozen=True, slots=True)
class GiveUp:
    """It never began."""

    why: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing more is put into it."""


@dataclass(frozen=True, slots=True)
class Became:
    state: str
    why: str


Action = Say | Begin | GoOn | LetDelete | GiveUp | Stop | Became
