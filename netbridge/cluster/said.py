"""What the members of a cluster say to each other."""

from __future__ import annotations

from dataclasses import dataclass

from shmbroker.netbridge.cluster.advert import Binding, Queue
from shmbroker.netbridge.election.question import Node

Link = int
"""A number that is not used again."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """What a broker says of itself, and others say on."""

    node: Node
    incarnation: bytes
    """Of its process."""
    epoch: int
    version: int
    """Of this within the process; (epoch, version) tells which of two is newer."""
    name: str
    uri: str
    """Where others reach it."""
    is_live: bool
    """Else it is a backup of the live of its node."""
    group: tuple[str, ...]
    """Names of the members of its node, its own among them."""
    programs: str
    """Where programs reach it; empty if they do not."""
    neighbours: tuple[Node, ...] = ()
    """Lives that it has links to, if messages for others may go through it."""
    heir: Node = b""
    """It leaves, and this one is to have all that it has; empty: it does not leave."""

    @property
    def age(self) -> tuple[int, int]:
        return self.epoch, self.version


@dataclass(frozen=True, slots=True)
class Here:
    """It is at the other end of this link."""

    me: Announcement
    lives: int
    """That it has seen, its own among them."""
    forgets: int
    """A digest of all that it knows to be forgotten."""


@dataclass(frozen=True, slots=True)
class Known:
    """Of another one, from hearsay."""

    of: Announcement


@dataclass(frozen=True, slots=True)
class Forgotten:
    """`cluster forget`: this node counts no more, unless it comes back with a higher epoch."""

    node: Node
    epoch: int


@dataclass(frozen=True, slots=True)
class Left:
    """This node was scaled down: it counts no more, as if forgotten, and what others have for it
    goes to another one, which has all that it has had."""

    node: Node
    epoch: int
    to: Node


@dataclass(frozen=True, slots=True)
class Ask:
    """What stands on your board behind this version?  Answered when there is something."""

    incarnation: bytes
    """Of the process whose board it was."""
    version: int
    of: Node = b""
    """Not your own board, but what you know of this node's."""


@dataclass(frozen=True, slots=True)
class Told:
    """A page of a board: the answer."""

    incarnation: bytes
    is_anew: bool
    """It begins with the first row: what was known before is void when all is told."""
    until: int
    """The version that who reads this has seen."""
    latest: int
    """And the one that there is."""
    queues: tuple[Queue, ...]
    bindings: tuple[Binding, ...]
    gone_queues: tuple[str, ...]
    gone_bindings: tuple[Binding, ...]
    of: Node = b""
    """As it was asked."""


@dataclass(frozen=True, slots=True)
class Offers:
    """It is being stopped: would you have all that is here?  Answered, as `Makes` is."""

    number: int
    group: str
    """Only one of this group may; empty: anybody."""


@dataclass(frozen=True, slots=True)
class Makes:
    """Exchanges, queues and bindings that are to be there (`netbridge/clustered/rows.py`)."""

    number: int
    rows: bytes


@dataclass(frozen=True, slots=True)
class Holds:
    """Programs that come to you wait from now on, or no more: what their messages are compared with
    is not there yet.  Answered, too."""

    number: int
    is_held: bool


@dataclass(frozen=True, slots=True)
class Replaces:
    """You have all that this node has had: others are to know (`Left`).  Answered, too."""

    number: int
    node: Node
    epoch: int


@dataclass(frozen=True, slots=True)
class Answers:
    number: int
    why: str
    """Why not; empty: it is done."""
    uri: str
    """Where programs come to, if they do."""


@dataclass(frozen=True, slots=True)
class Arbitrates:
    """It decides to which nodes groups go.  Times in milliseconds."""

    handler: str
    """The NAME of its [grouping.NAME]."""
    timeout: int
    group_timeout: int
    """0: groups are never forgotten."""


@dataclass(frozen=True, slots=True)
class WhoDecides:
    """Is it you?  Then say `Arbitrates`: an earlier one was before there was a handler here."""


@dataclass(frozen=True, slots=True)
class Proposes:
    """May this group go to the queue at this node?  Answered by `Decides`, or not at all."""

    queue: str
    group: str
    node: Node
    is_used: bool
    """Messages went there already, by an earlier decision."""


@dataclass(frozen=True, slots=True)
class Decides:
    queue: str
    group: str
    node: Node
    is_accepted: bool
    """Else this node is to be proposed."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The group has no route to this node any more."""

    queue: str
    group: str
    node: Node


@dataclass(frozen=True, slots=True)
class Counts:
    """How many backups of other nodes do you run?  Answered by `Counted`."""

    number: int


@dataclass(frozen=True, slots=True)
class Counted:
    number: int
    count: int
    is_yours: bool
    """One of them is that of who asks,"""
    backup: str
    """by this name."""
    why: str
    """Why it would run no other one; empty: it may."""


@dataclass(frozen=True, slots=True)
class Requests:
    """Run a backup of mine.  Answered by `Granted`."""

    number: int
    count: int
    """How many you run, as far as I know."""
    policy: str
    group: str
    name: str
    """Of who asks."""
    vhost: str
    network_vhost: str
    store: str
    """Folders; empty where none is shared."""
    journal: str
    pages: str
    member: str
    """Where members of its node reach it; empty where the store is shared."""


@dataclass(frozen=True, slots=True)
class Granted:
    number: int
    backup: str
    why: str
    """Why not; empty: it runs."""
    is_old: bool
    """The count was another one: ask again."""


@dataclass(frozen=True, slots=True)
class BackupEnds:
    """Your backup here has ended."""

    backup: str
    why: str


@dataclass(frozen=True, slots=True)
class Releases:
    """My backup at yours is not needed: another one has one."""


Said = Here | Known | Forgotten | Left | Ask | Told
Grouped = Arbitrates | WhoDecides | Proposes | Decides | Ends
"""What grouping handlers say, each to that of another node."""
Leaving = Offers | Makes | Holds | Replaces | Answers
"""What a node that leaves says to the one that takes its place, and is answered."""


OfBackups = Counts | Counted | Requests | Granted | BackupEnds | Releases
"""What lives say to each other that run each other's backups."""


@dataclass(frozen=True, slots=True)
class Say:
    link: Link
    what: Said
