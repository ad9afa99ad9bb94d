"""What the two brokers of a pair say to each other."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class State(Enum):
    PENDING = "pending"
    """It has just started."""
    ACTIVE = "active"
    PASSIVE = "passive"
    CONFLICT = "conflict"
    """Both were active, and a person has to say who goes on."""
    LEAVING = "leaving"
    """It stops in good order: nobody has to wait for its silence."""


@dataclass(frozen=True, slots=True)
class Activation:
    life: int
    """Of its process; no two of a broker have the same."""
    number: int


@dataclass(frozen=True, slots=True)
class Told:
    state: State
    activation: Activation
    """The newest of its process."""
    against: Activation | None = None
    """In conflict: the one of the other broker."""
