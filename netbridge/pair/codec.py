"""What the brokers of a pair say to each other, to bytes and back: the body of a frame `Talk`.

It is a MessagePack array of the kind and its fields, in their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgpack

from shmbroker.netbridge.election.codec import COUNT, Made, Perhaps, decoded
from shmbroker.netbridge.pair.told import Activation, State, Told
from shmbroker.netbridge.wire.field import Choice, Flag
from shmbroker.netbridge.wire.frame import Body

LIFE_BITS: Final = 63


@dataclass(frozen=True, slots=True)
class Said:
    is_primary: bool
    """Of who says it: a pair has one primary."""
    told: Told


ACTIVATION: Final = Made(Activation, COUNT, COUNT)
TOLD: Final = Made(Told, Choice(State), ACTIVATION, Perhaps(ACTIVATION))
SHAPES: Final = ((Said, Made(Said, Flag(), TOLD)),)
"""By the number of their kind, which never changes."""


def encode(said: Said) -> bytes:
    packed: bytes = msgpack.packb([0, *SHAPES[0][1].write(said)])
    return packed


def decode(body: Body) -> Said:
    """Malformed, and no other error, says what is wrong."""
    found = decoded(body, SHAPES, "something of a pair")
    assert isinstance(found, Said)
    return found
