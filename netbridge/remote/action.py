"""What the machines of a session have carried out."""

from __future__ import annotations

from enum import Enum

from shmbroker.ipc.base.errors import Error
from shmbroker.netbridge.remote.outcome import Outcome
from shmbroker.netbridge.wire.frame import Body, Command, Frame
from shmbroker.netbridge.wire.value import value


@value
class Say:
    """On the link that the session is attached to."""

    frame: Frame


@value
class Disconnect:
    """This link is of no use: the other end breaks the rules, or it is over."""

    why: str


# --- of the program -----------------------------------------------------------------------------


class Event(Enum):
    FAILURE_DETECTED = "failure-detected"
    REATTACHED = "reattached"
    FAILOVER_COMPLETED = "failover-completed"
    FAILOVER_FAILED = "failover-failed"
    LOST = "lost"
    REFUSED = "refused"
    MOVED = "moved"
    MOVING = "moving"
    """The broker wants it to go to another one, which the detail names; a program whose session is
    made again is told, and then what came of it."""
    CLOSED = "closed"


@value
class Tell:
    """The program's listener."""

    event: Event
    detail: str = ""


@value
class Connect:
    """Make a link, to the broker we had first, then to others; until told to stop."""


@value
class Go:
    """Leave this link, and make one to that broker first."""

    uri: str


@value
class StopConnecting:
    pass


@value
class Finish:
    """This call has ended."""

    call: int
    outcome: Outcome


@value
class Hand:
    """Messages for a consumer."""

    consumer: int
    generation: int
    first: int
    messages: int
    body: Body


@value
class Drop:
    """Whatever was handed over and not asked for so far will come again."""

    consumer: int


@value
class Unmade:
    """What the program had, and has no more: its queue was deleted, or the new session could not
    have it."""

    target: int
    error: Error


# --- of the broker ------------------------------------------------------------------------------


@value
class Perform:
    """Answer by `done`, once and at any time."""

    command: Command
    """Its body is whole."""


@value
class Wanted:
    """A consumer may be sent something: answer by `deliver`, as long as `room` says so."""

    consumer: int


@value
class GiveBack:
    """What these deliveries took; nobody will acknowledge it."""

    deliveries: tuple[int, ...]


@value
class Over:
    """The session is over: close what it has, and leave undone what it still waits for."""

    forgets: bool
    """In good order: nothing of its producers is in doubt."""


Action = (
    Say
    | Disconnect
    | Tell
    | Connect
    | StopConnecting
    | Go
    | Finish
    | Hand
    | Drop
    | Unmade
    | Perform
    | Wanted
    | GiveBack
    | Over
)
