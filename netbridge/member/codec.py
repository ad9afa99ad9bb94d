"""What members say to each other, and what they write into their journals, to bytes and back.

It is the body of a frame `Talk`, or of a record of the journal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgpack

from shmbroker.netbridge.election.codec import (
    BOOT,
    COPIES_MAX,
    COPY,
    EPOCH,
    GRANT,
    LEDGER,
    MEMBER,
)
from shmbroker.netbridge.election.codec import NODE as VOTER_NODE
from shmbroker.netbridge.member.said import (
    Accept,
    AskBack,
    Closing,
    Diverged,
    Dropped,
    GoAhead,
    Hello,
    InSync,
    Join,
    Joined,
    Leave,
    NoFailback,
    NotJoined,
    Offer,
    Resumed,
    Said,
    TakeOver,
    YouHold,
)
from shmbroker.netbridge.member.standing import Position
from shmbroker.netbridge.member.written import Written
from shmbroker.netbridge.wire.field import (
    NAME_BYTES_MAX,
    REASON_BYTES_MAX,
    URI_BYTES_MAX,
    Bound,
    Flag,
    Number,
    Octets,
    Text,
)
from shmbroker.netbridge.wire.frame import ID_BYTES, Body
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.vocabulary import COUNT, Made, Many, Pair, Vocabulary, unpacked

WIDE_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Here:
    """The first thing that is said on a connection, and again when the address is another one."""

    group: str
    """`group-name`."""
    pid: int
    started: int
    boot: str
    namespace: str
    """Of the process, so that one on the same host can see its death."""
    uri: str = ""
    """How programs on other hosts reach it; empty: they are not told."""
    engine: str = ""
    """What it lets grant epochs, as far as all members say the same of it; else empty."""


class Wide(Bound):
    """A number of 128 bits."""

    _octets = Octets(WIDE_BYTES, WIDE_BYTES)

    def read(self, value: object) -> int:
        self._octets.read(value)
        assert isinstance(value, bytes)
        return int.from_bytes(value)

    def write(self, value: Any) -> bytes:
        if type(value) is not int or not 0 <= value < 1 << 8 * WIDE_BYTES:
            raise Malformed("is no number of 128 bits")
        return value.to_bytes(WIDE_BYTES)


class Clipped(Text):
    """Words for people: what is too long is cut."""

    def write(self, value: Any) -> object:
        return self.read(str(value).encode()[: self.most].decode(errors="ignore"))


class Perhaps(Bound):
    """A node id, or nothing."""

    def read(self, value: object) -> bytes:
        if type(value) is not bytes or len(value) not in (0, ID_BYTES):
            raise Malformed("is no node id")
        return value

    write = read


NODE: Final = Perhaps()
NAME: Final = Text(NAME_BYTES_MAX)
WHY: Final = Clipped(REASON_BYTES_MAX)
POSITION: Final = Made(Position, COUNT, NAME, Wide(), Wide())
LEDGERS_MAX: Final = 16
"""Nodes for whose members the live of one that is replicated can vote."""
LEDGERS: Final = Many(Pair(VOTER_NODE, LEDGER), LEDGERS_MAX)
WRITTEN: Final = Made(
    Written, COUNT, EPOCH, MEMBER, Many(COPY, COPIES_MAX), Flag(), NAME, Flag(), Flag(), LEDGERS
)

HERE: Final = Made(
    Here, NAME, Number(0, 1 << 32), COUNT, BOOT, NAME, Text(URI_BYTES_MAX), WHY
)
HELLO: Final = Made(
    Hello, NODE, POSITION, Flag(), COUNT, Flag(), Flag(), Flag(), Flag(), BOOT,
    Many(BOOT, COPIES_MAX), COUNT, Flag(),
)  # fmt: skip

WORDS: Final = Vocabulary(
    "a word",
    (Here, HERE),
    (Hello, HELLO),
    (GoAhead, Made(GoAhead, COUNT)),
    (Join, Made(Join, NODE, POSITION, Flag(), Flag(), BOOT, COUNT)),
    (Joined, Made(Joined, COUNT, Flag(), COUNT)),
    (NotJoined, Made(NotJoined, WHY, COUNT)),
    (InSync, Made(InSync, COUNT)),
    (Dropped, Made(Dropped, WHY, Flag())),
    (Leave, Made(Leave)),
    (Closing, Made(Closing)),
    (Resumed, Made(Resumed)),
    (Offer, Made(Offer)),
    (Accept, Made(Accept)),
    (TakeOver, Made(TakeOver, GRANT)),
    (YouHold, Made(YouHold, GRANT)),
    (AskBack, Made(AskBack)),
    (NoFailback, Made(NoFailback, WHY)),
    (Diverged, Made(Diverged, COUNT, COUNT, Flag(), COUNT, NAME, COUNT)),
)


def encode(what: Said | Here) -> bytes:
    return WORDS.encode(what)


def decode(body: Body) -> Said | Here:
    """Malformed, and no other error, says what is wrong."""
    found: Said | Here = WORDS.decode(body)
    return found


def packed(written: Written) -> bytes:
    """For the journal."""
    made: bytes = msgpack.packb(WRITTEN.write(written))
    return made


def written(body: Body) -> Written:
    found: Written = WRITTEN.read(unpacked(body, "a standing"))
    return found
