"""What a plan asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shmbroker.netbridge.plan.state import LEVELS, State
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.wire.words import Refusal


@dataclass(frozen=True, slots=True)
class Connect:
    """Connect to this member and shake hands; one that is held has its connection already."""

    member: Single
    is_held: bool = False


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close the connection or the attempt, and the bridge on it."""

    member: Single


@dataclass(frozen=True, slots=True)
class Hold:
    """Keep this member connected and authenticated, idle."""

    member: Single


@dataclass(frozen=True, slots=True)
class Release:
    """Close what was held."""

    member: Single


@dataclass(frozen=True, slots=True)
class Move:
    """Finish the batch in flight; the plan goes to this member when it is told `drained`."""

    member: Single


@dataclass(frozen=True, slots=True)
class ReadMembers:
    """Read the list of members that stands there; the answer is `offered`."""

    place: str


@dataclass(frozen=True, slots=True)
class Present:
    """To the owner: from now on this member is the other end. Nothing of another one counts."""

    member: Single


@dataclass(frozen=True, slots=True)
class Lost:
    """To the owner: this member is the other end no more."""

    member: Single
    reason: str


@dataclass(frozen=True, slots=True)
class NoMember:
    """To the owner: the rounds are used up; this is what each member said."""

    said: Mapping[Single, str]


@dataclass(frozen=True, slots=True)
class Refused:
    """To the owner: a refusal that concerns more than this link."""

    member: Single
    refusal: Refusal
    reason: str


@dataclass(frozen=True, slots=True)
class Changed:
    """One line in the log."""

    state: State
    was: State
    seconds: float
    """How long it was that."""
    member: Single | None
    reason: str

    @property
    def level(self) -> str:
        return LEVELS[self.state]


Action = (
    Connect | Disconnect | Hold | Release | Move | ReadMembers
    | Present | Lost | NoMember | Refused | Changed
)  # fmt: skip
Actions = Iterator[Action]
