"""What is said of queue replicas, to bytes and back: the body of a frame `Talk`.

It is a MessagePack array of the kind and its fields, in their order.
"""

from __future__ import annotations

from typing import Any, Final

import msgpack

from shmbroker.core.layout import POSITION_MASK, QUEUE_ROWS, SLOTS_MAX
from shmbroker.netbridge.election.codec import COUNT, Made, decoded
from shmbroker.netbridge.queue_replica.told import (
    Follow,
    Follows,
    Has,
    Leave,
    Moment,
    OfOriginal,
    OfReplica,
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
from shmbroker.netbridge.wire.malformed import Malformed

NUMBER: Final = Number(0, QUEUE_ROWS)
POSITION: Final = Number(0, POSITION_MASK)
NS_MAX: Final = (1 << 63) - 1

SHAPES: Final[tuple[tuple[type[Any], Made], ...]] = (
    (Follow, Made(Follow, NUMBER, Text(NAME_BYTES_MAX, 1), Octets(0, ID_BYTES), POSITION)),
    (Leave, Made(Leave, NUMBER)),
    (Has, Made(Has, COUNT)),
    (Follows, Made(Follows, NUMBER, Octets(ID_BYTES, ID_BYTES), POSITION, Number(1, SLOTS_MAX),
                   Number(-NS_MAX, NS_MAX))),
    (Unserved, Made(Unserved, NUMBER, Choice(Why), Text(REASON_BYTES_MAX))),
    (Moment, Made(Moment, Flag())),
)  # fmt: skip
"""By the number of their kind, which never changes."""
NUMBER_OF: Final = {kind: number for number, (kind, _) in enumerate(SHAPES)}
OF_REPLICAS: Final = (Follow, Leave, Has)


def encode(what: OfReplica | OfOriginal) -> bytes:
    number = NUMBER_OF[type(what)]
    packed: bytes = msgpack.packb([number, *SHAPES[number][1].write(what)])
    return packed


def from_replica(body: Body) -> OfReplica:
    """Malformed, and no other error, says what is wrong."""
    found = decoded(body, SHAPES, "something of queue replicas")
    if not isinstance(found, OF_REPLICAS):
        raise Malformed(f"a replica says no {type(found).__name__.lower()}")
    return found


def from_original(body: Body) -> OfOriginal:
    found = decoded(body, SHAPES, "something of queue replicas")
    if isinstance(found, OF_REPLICAS):
        raise Malformed(f"an original says no {type(found).__name__.lower()}")
    said: OfOriginal = found
    return said
