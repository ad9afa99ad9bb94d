"""What members and voters say to each other.

Question: may MEMBER be live for NODE at EPOCH?  It is asked in three steps, as in Paxos:

    WOULD     would you say yes?  Nothing is kept.
    PREPARE   promise this ballot: no older one will be accepted for this epoch
    ACCEPT    accept this grant in this ballot

The only voter of a node is asked for both at once, so that it syncs once:

    AT_ONCE   promise this ballot, if none was promised for this epoch, and accept this grant in it

There is one decision for each (node, epoch): a majority has accepted the same grant in one ballot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

Node = bytes


class Step(Enum):
    WOULD = "would"
    PREPARE = "prepare"
    ACCEPT = "accept"
    AT_ONCE = "at once"


class Verdict(Enum):
    YES = "yes"
    NO = "no"
    LATER = "later"
    """The voter is itself in doubt."""


@dataclass(frozen=True, slots=True, order=True)
class Ballot:
    round: int
    asker: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A member of an in-sync list."""

    member: str
    boot: str = ""
    """What it has confirmed outlives only this boot of its host; empty: any."""

    def allows(self, member: str, boot: str) -> bool:
        return self.member == member and self.boot in ("", boot)


@dataclass(frozen=True, slots=True)
class Grant:
    epoch: int
    holder: str
    copies: tuple[Copy, ...]
    """In sync, the holder's included."""

    @property
    def members(self) -> frozenset[str]:
        return frozenset(each.member for each in self.copies)


@dataclass(frozen=True, slots=True)
class Listed:
    """A decided grant, with the in-sync list as the live told it last."""

    grant: Grant
    version: int
    """Of the list, within the epoch."""

    @property
    def age(self) -> tuple[int, int]:
        """The greater, the newer."""
        return self.grant.epoch, self.version


@dataclass(frozen=True, slots=True)
class Question:
    node: Node
    step: Step
    attempt: int
    """Of the asker, so that a late answer is known as one."""
    asker: str
    grant: Grant
    """What is asked for: whose holder, at which epoch."""
    boot: str = ""
    """Of the holder's host, if the holder asks."""
    ballot: Ballot | None = None
    has_met_all: bool = False
    """Everybody on the list is there, and nobody has more: its boot does not count."""
    is_adopted: bool = False
    """The grant is one that an earlier ballot may have decided."""
    told: Listed | None = None
    """What another voter knows: one that the live could not reach has an older list."""

    @property
    def accepts(self) -> bool:
        return self.step in (Step.ACCEPT, Step.AT_ONCE)

    def before_any_promise(self) -> Question:
        """The same, of which nothing is kept."""
        return replace(self, step=Step.WOULD, ballot=None)


@dataclass(frozen=True, slots=True)
class Answer:
    node: Node
    step: Step
    attempt: int
    verdict: Verdict
    reason: str = ""
    ballot: Ballot | None = None
    """That of the question, if it says yes; else the newest that was promised, if that is why not.
    """
    accepted: tuple[Ballot, Grant] | None = None
    """For the epoch that was asked for, or a higher one."""
    known: Listed | None = None
    """The newest that is decided, as far as this voter knows."""


@dataclass(frozen=True, slots=True)
class Renew:
    """The live: I hold this epoch, and this is my in-sync list."""

    node: Node
    grant: Grant
    version: int
    """Of the list, within the epoch."""
    serial: int
    lease_ms: int = 0
    """How long the voter is to hold still; 0: leases are off, or as the voter likes."""


@dataclass(frozen=True, slots=True)
class Renewed:
    node: Node
    epoch: int
    version: int
    serial: int


@dataclass(frozen=True, slots=True)
class Stale:
    """Not renewed: another grant is newer."""

    node: Node
    epoch: int
    newest: Grant
    is_decided: bool
    """False: it was accepted here, and a majority may not have."""


@dataclass(frozen=True, slots=True)
class Release:
    """The live gives its lease back."""

    node: Node
    epoch: int


FromMember = Question | Renew | Release
FromVoter = Answer | Renewed | Stale
