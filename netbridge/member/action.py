"""What a member's machine wants done: the whole interface to the path of data, in one direction.

the machine says                  what is done                         what it hears then
Begin(epoch, copies)              restore the rings, write `Began`     wrote, synced, began
Write(record)                     append it to the journal             wrote, synced
Hold                              write what is there, then records    held
GoOn                              write everything again
WriteLeft                         a record of this member's own        left
Ship(member, is_all)              frames to it, from where it ends     has
StopShipping(member)
Follow(member, is_all)            take its frames, sync, answer        took, copied
Unfollow                          take nothing more
Serve, StopServing                programs in, programs out
LookAround                        whether a peer is reached by now     isolated
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from shmbroker.netbridge.election.candidate import Ask
from shmbroker.netbridge.election.question import Copy, Release, Renew
from shmbroker.netbridge.member.said import Said
from shmbroker.netbridge.member.standing import Record


@dataclass(frozen=True, slots=True)
class Tell:
    member: str
    what: Said


@dataclass(frozen=True, slots=True)
class TellVoter:
    voter: str
    what: Renew | Release


@dataclass(frozen=True, slots=True)
class Promote:
    """Run `on-promote`; then `promoted`."""


@dataclass(frozen=True, slots=True)
class Begin:
    """The first frame of an epoch.  Nothing is confirmed before it is synced."""

    epoch: int
    copies: tuple[Copy, ...]
    is_forced: bool = False
    empties: bool = False
    """With a journal that has nothing else: what was in it is at another node."""
    is_closed: bool = False
    """No program is let in."""


@dataclass(frozen=True, slots=True)
class Write:
    record: Record


@dataclass(frozen=True, slots=True)
class Hold:
    """What programs have published by now is written, and then nothing but records."""


@dataclass(frozen=True, slots=True)
class GoOn:
    """Of a journal that was held."""


@dataclass(frozen=True, slots=True)
class WriteLeft:
    """Of this member alone: it is not in sync any more, by its own will."""


@dataclass(frozen=True, slots=True)
class Ship:
    member: str
    is_all: bool
    stream: int
    """Frames and confirms have its number, so that those of an older one are known."""


@dataclass(frozen=True, slots=True)
class StopShipping:
    member: str


@dataclass(frozen=True, slots=True)
class Follow:
    member: str
    epoch: int
    is_all: bool
    """What is here is set aside first, and erased when the copy is whole."""
    stream: int


@dataclass(frozen=True, slots=True)
class Unfollow:
    pass


@dataclass(frozen=True, slots=True)
class Serve:
    epoch: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Give all that is here to another node; then `gave`."""

    epoch: int


@dataclass(frozen=True, slots=True)
class StopServing:
    """Programs are told that it moved, here or to nobody yet."""

    to: str = ""


@dataclass(frozen=True, slots=True)
class LookAround:
    """Whether it reaches a peer of `network-check` from now on, or none; then `isolated`."""


@dataclass(frozen=True, slots=True)
class End:
    is_failure: bool
    detail: str = ""


class Alert(Enum):
    """Lines of the log."""

    IN_SYNC = "in sync"
    REPLICA_LOST = "replica lost"
    LEVEL_FELL = "level fell"
    LEVEL_RESTORED = "level restored"
    VOTE_WON = "vote won"
    VOTE_LOST = "vote lost"
    TOOK_OVER = "took over"
    HANDED_OVER = "handed over"
    FAILBACK_ASKED = "failback asked"
    FAILBACK_AGREED = "failback agreed"
    FAILBACK_REFUSED = "failback refused"
    HELD = "held"
    FENCED = "fenced"
    SUSPENDED = "suspended"
    CONFLICT = "conflict"
    STALE = "stale"
    NOT_IN_SYNC = "not in sync"
    FORCED = "forced"
    ISOLATED = "isolated"
    REACHES = "not isolated"
    DRAINED = "drained"


@dataclass(frozen=True, slots=True)
class Line:
    alert: Alert
    detail: str = ""


Action = (
    Tell | TellVoter | Ask | Promote | Begin | Write | Hold | GoOn | WriteLeft | Ship
    | StopShipping | Follow | Unfollow | Serve | Drain | StopServing | LookAround | End | Line
)  # fmt: skip
