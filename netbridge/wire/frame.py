"""The kinds of frames, their fields, and what each field may be.

    near end -> far end     Hello, Proof                                    the handshake
    far end -> near end     Challenge, Welcome or Refused, Active
    source -> target        Open, Resume, Records or Parts, Passed          the flow of one target
    target -> source        Opened or Unopened, Credit, Confirm, Reject
    both                    Beat, Closing, Drained, Moved, Question, Answer
    program -> broker       Attach, Command, Seen, Grant
    broker -> program       Attached, Result, Delivery, Nodes, Invite
    replica -> live         Join, Reached                                   frames of a journal
    live -> replica         Joined or Unjoined, Shipment, InSync
    member <-> voter        Vote                                            who may be live
    member <-> member       Talk                                            of one node

A position is that of a message in the source's ring.  Where a frame says `mark` or `end`, all
messages below it are meant.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias, get_origin, get_type_hints

from shmbroker.core.layout import POSITION_BITS, RECORD_HEAD_BYTES
from shmbroker.netbridge.wire import version
from shmbroker.netbridge.wire.field import (
    NAME_BYTES_MAX,
    REASON_BYTES_MAX,
    URI_BYTES_MAX,
    Bound,
    Choice,
    Flag,
    Number,
    Octets,
    Text,
)
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.value import value
from shmbroker.netbridge.wire.words import (
    Demand,
    Level,
    Refusal,
    ReplicaAck,
    Role,
    Standing,
    TargetKind,
    Verb,
)

ID_BYTES = 16
CHALLENGE_BYTES_MIN = 16
CHALLENGE_BYTES_MAX = 256
POSITION_MAX = (1 << POSITION_BITS) - 1
COUNT_MAX = (1 << 63) - 1
TARGETS_MAX = 1 << 20
MESSAGE_BYTES_MAX = 1 << 31
BEAT_MS_MIN, BEAT_MS_MAX = 10, 60_000
FRAME_BYTES_MIN, FRAME_BYTES_MAX = 64 << 10, 64 << 20

Body: TypeAlias = bytes | memoryview


Count: TypeAlias = Annotated[int, Number(0, COUNT_MAX)]
Position: TypeAlias = Annotated[int, Number(0, POSITION_MAX)]
Target: TypeAlias = Annotated[int, Number(0, TARGETS_MAX)]
"""The number of a target: its source counts."""
Size: TypeAlias = Annotated[int, Number(0, MESSAGE_BYTES_MAX)]
Version: TypeAlias = Annotated[int, Number(1, version.MOST)]
BeatMs: TypeAlias = Annotated[int, Number(BEAT_MS_MIN, BEAT_MS_MAX)]
FrameBytes: TypeAlias = Annotated[int, Number(FRAME_BYTES_MIN, FRAME_BYTES_MAX)]
Window: TypeAlias = Annotated[int, Number(-1, MESSAGE_BYTES_MAX)]
Wait: TypeAlias = Annotated[int, Number(-1, COUNT_MAX)]
"""-1: for ever."""
Code: TypeAlias = Annotated[int, Number(-(1 << 31), (1 << 31) - 1)]
Yes: TypeAlias = Annotated[bool, Flag()]
Name: TypeAlias = Annotated[str, Text(NAME_BYTES_MAX, 1)]
User: TypeAlias = Annotated[str, Text(NAME_BYTES_MAX)]
Why: TypeAlias = Annotated[str, Text(REASON_BYTES_MAX)]
Uri: TypeAlias = Annotated[str, Text(URI_BYTES_MAX)]
Id: TypeAlias = Annotated[bytes, Octets(ID_BYTES, ID_BYTES)]
ChallengeBytes: TypeAlias = Annotated[bytes, Octets(CHALLENGE_BYTES_MIN, CHALLENGE_BYTES_MAX)]
ProofBytes: TypeAlias = Annotated[bytes, Octets(1, CHALLENGE_BYTES_MAX)]


class Frame:
    __slots__ = ()

    def check(self) -> None:
        """What fields say of each other; Malformed."""


class Carrying(Frame):
    """With a body, which is no field of the head."""

    __slots__ = ()
    body: Body


@value
class Hello(Frame):
    low: Version
    high: Version
    node: Id
    incarnation: Id
    """Of the process."""
    name: Name
    standing: Annotated[Standing, Choice(Standing)]
    epoch: Count
    vhost: Name
    link: Name
    attempt: Count
    """Of this process to make this link: the highest is the one that counts."""
    role: Annotated[Role, Choice(Role)]
    user: User
    challenge: ChallengeBytes
    beat_ms: BeatMs
    frame_bytes: FrameBytes
    """No frame to it may be larger."""

    def check(self) -> None:
        if self.low > self.high:
            raise Malformed(f"low is {self.low}, above high, {self.high}")


@value
class Challenge(Frame):
    challenge: ChallengeBytes


@value
class Proof(Frame):
    proof: ProofBytes


@value
class Welcome(Frame):
    version: Version
    node: Id
    incarnation: Id
    name: Name
    standing: Annotated[Standing, Choice(Standing)]
    epoch: Count
    proof: ProofBytes
    beat_ms: BeatMs
    frame_bytes: FrameBytes
    clock_ms: Count
    """Time of day there."""


@value
class Refused(Frame):
    refusal: Annotated[Refusal, Choice(Refusal)]
    detail: Why
    live: Uri
    """Of `passive`: where the live is, if it is known."""


@value
class Active(Frame):
    """To whoever was refused as `passive` and has stayed: say your Proof again, or go."""


@value
class Open(Frame):
    target: Target
    kind: Annotated[TargetKind, Choice(TargetKind)]
    name: Name
    origin: Id
    level: Annotated[Level, Choice(Level)]
    """At which messages are to be confirmed."""
    exact: Yes
    """Once each; false: what is in doubt may come twice."""
    clock_ns: Count
    """Of the source's host, when this is sent: deadlines of messages are of this clock."""


@value
class Opened(Frame):
    target: Target
    mark: Position
    """Below it all is appended there; 0 also if the origin is not known."""
    confirmed: Position
    """Below it all is there at the level that was asked for."""
    message_bytes: Size
    """No message may be larger."""
    messages: Count
    bytes: Count
    """The first credit, as in `Credit`."""

    def check(self) -> None:
        if self.confirmed > self.mark:
            raise Malformed(f"confirmed is {self.confirmed}, above mark, {self.mark}")


@value
class Unopened(Frame):
    target: Target
    reason: Why


@value
class Resume(Frame):
    target: Target
    position: Position
    """The first message comes from here or later."""


@value
class Records(Carrying):
    target: Target
    first: Position
    end: Position
    messages: Count
    redelivered: Yes
    body: Body

    def check(self) -> None:
        if not 1 <= self.messages <= self.end - self.first:
            raise Malformed(f"{self.messages} messages from {self.first} to {self.end}")
        length = len(self.body)
        if length % 8 or length < self.messages * RECORD_HEAD_BYTES:
            raise Malformed(f"{length} bytes are no {self.messages} records")


@value
class Part(Carrying):
    """Of a record that is larger than a frame: they come one behind the other."""

    target: Target
    first: Position
    offset: Size
    total: Size
    redelivered: Yes
    body: Body

    def check(self) -> None:
        if not self.body:
            raise Malformed("a part without bytes")
        if self.offset + len(self.body) > self.total:
            raise Malformed(f"a part up to {self.offset + len(self.body)} of {self.total} bytes")


@value
class Credit(Frame):
    """So many messages and bytes may have been sent in all since the target was opened."""

    target: Target
    messages: Count
    bytes: Count


@value
class Confirm(Frame):
    target: Target
    end: Position
    level: Annotated[Level, Choice(Level)]


@value
class Reject(Frame):
    """This message does not go there.  The target stands before it until it is passed."""

    target: Target
    position: Position
    reason: Why


@value
class Passed(Frame):
    """A message that was rejected is dealt with at the source."""

    target: Target
    position: Position


@value
class Beat(Frame):
    epoch: Count


@value
class Closing(Frame):
    reason: Why


@value
class Drained(Frame):
    """Nothing of this end is in flight any more, and nothing more will come."""


@value
class Moved(Frame):
    """The other end is to make its link to another broker."""

    uri: Uri


@value
class Question(Carrying):
    call: Count
    verb: Name
    body: Body


@value
class Answer(Carrying):
    call: Count
    code: Code
    body: Body


@value
class Attach(Frame):
    """A program begins its session, or goes on with it after a loss."""

    session: Id
    generation: Count
    """Of the session: one that is made again has a higher one."""
    attempt: Count
    """Of this process to attach: the highest is the one that counts."""
    resumes: Yes
    seen: Count
    """So many results and deliveries have come."""
    window: Window
    """Bytes that the broker may keep for it; -1: nothing, the session ends with its link."""


@value
class Attached(Frame):
    resumed: Yes
    """False, to who would resume: there is no such session, and none was made."""
    seen: Count
    """So many commands have come."""
    ttl_ms: Count


@value
class Command(Carrying):
    number: Count
    """Of this session; a command whose body is in several frames has one number."""
    verb: Annotated[Verb, Choice(Verb)]
    target: Target
    """A consumer, producer or temporary queue, as the program counts them."""
    value: Count
    count: Count
    demand: Annotated[Demand, Choice(Demand)]
    wait_ms: Wait
    """For so long it may wait at the broker: for room, for a message, for a reply."""
    repeated: Yes
    """A former session may have carried it out."""
    seen: Count
    more: Yes
    """The body goes on in the next frame."""
    body: Body


@value
class Result(Carrying):
    number: Count
    """Among results and deliveries of this session."""
    call: Count
    """The number of the command."""
    code: Code
    value: Count
    """A position, a highest number, the first of the deliveries."""
    level: Annotated[Level, Choice(Level)]
    more: Yes
    body: Body


@value
class Delivery(Carrying):
    number: Count
    consumer: Target
    first: Count
    """The number of its first message among those of the session."""
    messages: Count
    """0: the consumer has ended, and the body says why."""
    more: Yes
    body: Body


@value
class Grant(Frame):
    """So many messages and bytes may have been delivered to this consumer since it was made."""

    consumer: Target
    messages: Count
    bytes: Count


@value
class Seen(Frame):
    """So many results and deliveries have come."""

    seen: Count


@value
class Join(Frame):
    """A replica tells the last frame that it follows, and the same in its own journal."""

    name: Name
    boot: Id
    ack: Annotated[ReplicaAck, Choice(ReplicaAck)]
    number: Count
    epoch: Count
    seal: Count
    chain: Count
    own_number: Count
    own_epoch: Count
    own_seal: Count
    own_chain: Count


@value
class Joined(Frame):
    resumes: Yes
    """False: all is copied, and what it has is to be set aside."""
    number: Count
    """Frames come from behind this one on, as the live calls it."""
    epoch: Count
    seal: Count
    chain: Count
    size: Count
    """Bytes that come out of the live's files first, about: its newest segment is not counted."""


@value
class Unjoined(Frame):
    reason: Why


@value
class Shipment(Carrying):
    """Frames of the journal."""

    more: Yes
    """They go on in the next one."""
    body: Body


@value
class Reached(Frame):
    """The replica has all frames up to this one."""

    number: Count


@value
class InSync(Frame):
    """What comes after this frame is confirmed when the replica has it."""

    number: Count


@value
class Vote(Carrying):
    """What a member says to a voter, or a voter to a member (netbridge/election/codec.py)."""

    body: Body


@value
class Talk(Carrying):
    """What members of a node say to each other (netbridge/member/codec.py), the brokers of a pair
    (netbridge/pair/codec.py), those of a cluster (netbridge/cluster/codec.py), and the ends of a
    network link (netbridge/network/codec.py)."""

    body: Body


@value
class Nodes(Carrying):
    """To a program: who serves each node, and who waits (netbridge/remote/topology.py)."""

    body: Body


@value
class Invite(Frame):
    """To a program: it may go to this broker, as soon as it has nothing open
    (netbridge/remote/moving.py)."""

    uri: Uri


@value
class Parting(Frame):
    """To a program: the broker gives all that it has to another one, and asks what is acknowledged
    in transactions that are open (netbridge/remote/travelling.py)."""


KINDS: Final[tuple[type[Frame], ...]] = (
    Hello,
    Challenge,
    Proof,
    Welcome,
    Refused,
    Active,
    Open,
    Opened,
    Unopened,
    Resume,
    Records,
    Part,
    Credit,
    Confirm,
    Reject,
    Passed,
    Beat,
    Closing,
    Drained,
    Moved,
    Question,
    Answer,
    Attach,
    Attached,
    Command,
    Result,
    Delivery,
    Grant,
    Seen,
    Join,
    Joined,
    Unjoined,
    Shipment,
    Reached,
    InSync,
    Vote,
    Talk,
    Nodes,
    Invite,
    Parting,
)
"""By the number of their kind, which never changes."""

OF_REPLICATION: Final = frozenset({Join, Joined, Unjoined, Shipment, Reached, InSync, Talk})
OF_VOTES: Final = frozenset({Vote})
OF_PAIRS: Final = frozenset({Talk})
OF_NETWORKS: Final = frozenset({Talk})
OF_CLUSTERS: Final = frozenset({Talk, Vote})
OF_SESSIONS: Final = frozenset(
    {Attach, Attached, Command, Result, Delivery, Grant, Seen, Nodes, Invite, Parting}
)

GROWING: Final = (Hello, Refused)
"""A newer version may have more fields behind ours."""


def bounds_of(kind: type[Frame]) -> list[tuple[str, Bound]]:
    """The fields of the head, in their order."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        (name, hint.__metadata__[0])
        for name, hint in hints.items()
        if get_origin(hint) is Annotated
    ]


def named(kind: type[Frame]) -> str:
    return kind.__name__.lower()
