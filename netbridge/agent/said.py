"""What the two ends of an agent's link tell each other, before anything is shipped.

    agent ──► Joins ──► the other broker declares its exchange ──► Joined ──► what waits is shipped
                                                              └──► Apart, and why

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


Said = Joins | Joined | Apart
