"""What members of one node say to each other."""

from __future__ import annotations

from dataclasses import dataclass

from shmbroker.netbridge.election.question import Grant
from shmbroker.netbridge.member.standing import Position


@dataclass(frozen=True, slots=True)
class Hello:
    """At each connection, and when anything of it changes."""

    node: bytes
    last: Position
    serves: bool
    epoch: int
    """The newest that its journal begins, or that it serves in."""
    is_forced: bool = False
    """That epoch was begun by a person's --force."""
    is_eligible: bool = True
    """Its journal has all that was confirmed, unless it was dropped and does not know."""
    is_listed: bool = True
    """The same, or its last frames went with an earlier boot of its host, or it has left."""
    is_following: bool = False
    """Its last frame is another one at any moment: it follows, or becomes live where nobody is
    asked."""
    life: str = ""
    """Of its process."""
    dead: tuple[str, ...] = ()
    """Lives of processes of which the kernel of its host has told that they are no more."""
    claim: int = 0
    """Where nobody is asked: it begins the next epoch as soon as the others let it go ahead.  The
    number of its claim; 0: it has none."""
    is_parked: bool = False
    """It waits for the live that was stopped, or is that one, and serves again by itself."""


@dataclass(frozen=True, slots=True)
class GoAhead:
    """To a claim: I begin nothing until you have said that it is withdrawn."""

    claim: int


@dataclass(frozen=True, slots=True)
class Join:
    """A backup to a live: I follow you, and my journal ends here."""

    node: bytes
    last: Position
    is_whole: bool
    has_left: bool
    """It has noted that it left in good order; it counts again from the next list on."""
    boot: str
    stream: int
    """Of this process: what is shipped for an older one is not for it any more."""


@dataclass(frozen=True, slots=True)
class Joined:
    """You get the tail, or everything; in the latter case move your data aside first."""

    epoch: int
    is_all: bool
    stream: int


@dataclass(frozen=True, slots=True)
class NotJoined:
    reason: str
    """`already-replicating`, `later`, `node`, `stale`."""
    stream: int


@dataclass(frozen=True, slots=True)
class InSync:
    """You count: confirms wait for you, and the voters know."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """You follow no more."""

    reason: str
    serves: bool = True
    """Join again.  Otherwise it is the live no more."""


@dataclass(frozen=True, slots=True)
class Leave:
    """A backup stops in good order."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The live begins to stop, or to hand over."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """It goes on after all."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The live to whom it hands over: you have all.  Nobody is asked before it has answered."""


@dataclass(frozen=True, slots=True)
class Accept:
    """The answer."""


@dataclass(frozen=True, slots=True)
class TakeOver:
    """The voters have granted you this epoch; all that was confirmed is in your journal."""

    grant: Grant


@dataclass(frozen=True, slots=True)
class YouHold:
    """The voters say that this was granted to you, and you do not serve.

    Begin it, or have the next epoch granted to whoever says this, if your copy is not whole.
    """

    grant: Grant


@dataclass(frozen=True, slots=True)
class AskBack:
    """The preferred member is in sync, and asks for its role."""


@dataclass(frozen=True, slots=True)
class NoFailback:
    reason: str


@dataclass(frozen=True, slots=True)
class Diverged:
    """A member that follows has set aside what nobody else has.  For people: nothing follows."""

    messages: int
    size: int
    """Bytes of these messages."""
    is_exact: bool
    """Otherwise there are so many at most."""
    epoch: int
    holder: str
    """Who was live when the last of it was written."""
    number: int
    """Of the set."""


Said = (
    Hello | GoAhead | Join | Joined | NotJoined | InSync | Dropped | Leave | Closing | Resumed
    | Offer | Accept | TakeOver | YouHold | AskBack | NoFailback | Diverged
)  # fmt: skip
