"""What the machine of a link has carried out."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from shmbroker.netbridge.link.ending import Ending, State
from shmbroker.netbridge.wire.frame import Body, Frame
from shmbroker.netbridge.wire.value import value
from shmbroker.netbridge.wire.words import Level, TargetKind


@value
class Send:
    frame: Frame
    number: int


@value
class Became:
    state: State


@value
class Waits:
    """The member is passive.  The connection stays, until the member serves or the owner stops."""

    live: str


@value
class Ended:
    """The last action: close the socket, let go of followers and sinks."""

    ending: Ending


# --- of a session ----------------------------------------------------------------------------


@value
class Heard:
    """A frame of the session of a program (netbridge/remote)."""

    frame: Frame


# --- of a source ------------------------------------------------------------------------------


@value
class Seek:
    """The next read of the target's ring begins here."""

    target: int
    position: int


@value
class Read:
    """Read a batch, of one message at least if there is one; answer by `read`."""

    target: int
    messages: int
    bytes: int


@value
class Release:
    """All below is at the far end: DONE.  Answer by `released` once that outlives a crash."""

    target: int
    end: int
    level: Level


@value
class SetAside:
    """This message is refused: to the dead-letter queue with it.  Answer by `dealt`."""

    target: int
    position: int
    reason: str


@value
class BeginHistory:
    """The target knows more than the ring ever had: positions are used twice.

    A new history gives another origin; then the link is made anew.
    """

    target: int


@value
class Unserved:
    """The far end does not open this target."""

    target: int
    reason: str


# --- of a target ------------------------------------------------------------------------------


@value
class OpenSink:
    """Answer by `opened` or `unopened`."""

    target: int
    kind: TargetKind
    name: str
    origin: bytes
    level: Level
    exact: bool
    later: int
    """Nanoseconds to be added to deadlines of messages."""


@value
class Pour:
    """Append these records; answer by `poured`."""

    target: int
    records: Body
    redelivered: bool


@value
class Skip:
    """What is below and not appended was dealt with at its source: it is known from now on."""

    target: int
    end: int


@value
class Owes:
    """A confirm that is told soon; only the machine itself hears of it."""

    target: int


@value
class CloseSink:
    """`forgets`: the source has nothing in doubt, so the origin is free."""

    target: int
    forgets: bool


# --- for people -------------------------------------------------------------------------------


class Alert(Enum):
    MARK_BEHIND = "the mark of the target is below what it has confirmed"
    ORIGIN_FORGOTTEN = "the target does not know the origin any more"
    MARK_AHEAD = "the mark of the target is above all that the ring had"
    VHOST = "a link asked for a network vhost that is not served"
    DUPLICATE_NODE = "another broker has our node id"
    CLOCKS = "the clocks of the hosts differ"


@value
class Line:
    """For the log, and a count."""

    alert: Alert
    detail: str
    count: int = 0


Action: TypeAlias = (
    Send
    | Became
    | Waits
    | Ended
    | Heard
    | Seek
    | Read
    | Release
    | SetAside
    | BeginHistory
    | Unserved
    | OpenSink
    | Pour
    | Skip
    | Owes
    | CloseSink
    | Line
)
