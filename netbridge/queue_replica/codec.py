"""What is said of queue replicas, to bytes and back: the body of a frame `Talk`."""

from __future__ import annotations

from typing import Final

from shmbroker.core.layout import POSITION_MASK, QUEUE_ROWS, SLOTS_MAX
from shmbroker.netbridge.queue_replica.told import (
    CHAIN_MAX,
    Chained,
    Counted,
    Follow,
    Follows,
    Has,
    Hop,
    Leave,
    Moment,
    OfOriginal,
    OfReplica,
    Shown,
    Unserved,
    Why,
)
from shmbroker.netbridge.wire.field import (
    NAME_BYTES_MAX,
    REASON_BYTES_MAX,
    Choice,
    Flag,
    Number,
    Octets,
    Text,
)
from shmbroker.netbridge.wire.frame import ID_BYTES, Body
from shmbroker.netbridge.wire.vocabulary import COUNT, Made, Many, Vocabulary

NUMBER: Final = Number(0, QUEUE_ROWS)
POSITION: Final = Number(0, POSITION_MASK)
NS_MAX: Final = 1 << 62
"""Two of them differ by a number that fits into a word."""
CHAIN: Final = Many(Made(Hop, Octets(ID_BYTES, ID_BYTES), Text(NAME_BYTES_MAX)), CHAIN_MAX)

WORDS: Final = Vocabulary(
    "something of queue replicas",
    (Follow, Made(Follow, NUMBER, Text(NAME_BYTES_MAX, 1), Octets(0, ID_BYTES), POSITION)),
    (Leave, Made(Leave, NUMBER)),
    (Has, Made(Has, COUNT)),
    (Follows, Made(Follows, NUMBER, Octets(ID_BYTES, ID_BYTES), POSITION, Number(1, SLOTS_MAX),
                   Number(-NS_MAX, NS_MAX), CHAIN, Flag())),
    (Unserved, Made(Unserved, NUMBER, Choice(Why), Text(REASON_BYTES_MAX))),
    (Moment, Made(Moment, Flag())),
    (Shown, Made(Shown, COUNT)),
    (Chained, Made(Chained, NUMBER, CHAIN)),
    (Counted, Made(Counted, NUMBER)),
)  # fmt: skip
OF_REPLICAS: Final = (Follow, Leave, Has, Shown)
OF_ORIGINALS: Final = (Follows, Chained, Unserved, Moment, Counted)


def encode(what: OfReplica | OfOriginal) -> bytes:
    return WORDS.encode(what)


def from_replica(body: Body) -> OfReplica:
    """Malformed, and no other error, says what is wrong."""
    said: OfReplica = WORDS.said_by("a replica", OF_REPLICAS, body)
    return said


def from_original(body: Body) -> OfOriginal:
    said: OfOriginal = WORDS.said_by("an original", OF_ORIGINALS, body)
    return said
