"""How a call ends: ok, failed (it certainly had no effect), or unknown."""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.value import value
from shmbroker.netbridge.wire.words import Level


class End(Enum):
    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Why(Enum):
    """What the end of a call is called in the API."""

    DONE = "done"
    ANSWERED = "the broker refuses it"
    CLOSED = "the connection was lost"
    LATE = "it took too long"
    CANCELLED = "it was cancelled"
    REVOKED = "the delivery was given to somebody else"
    DEALT_WITH = "the delivery was dealt with before"
    ROLLED_BACK = "the transaction was rolled back"
    MALFORMED = "the broker's answer is malformed"


@value
class Token:
    """Names messages whose fate is unknown, across sessions."""

    producer: int
    first: int
    count: int
    behind: tuple[Token, ...] = field(default=(), compare=False)
    """Of calls that were begun behind it, and are unknown as well."""


@value
class Outcome:
    end: End
    why: Why
    code: int = 0
    """Of the broker."""
    value: int = 0
    """The position of what was published, or the number of the first delivery."""
    level: Level = Level.SHM
    """That what was published has reached."""
    body: Body = b""
    """Of the broker's answer; of an error, what it says."""
    token: Token | None = None
