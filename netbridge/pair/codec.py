"""What the brokers of a pair say to each other, to bytes and back: the body of a frame `Talk`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from shmbroker.netbridge.pair.told import Activation, State, Told
from shmbroker.netbridge.wire.field import Choice, Flag
from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.vocabulary import COUNT, Made, Perhaps, Vocabulary

LIFE_BITS: Final = 63


@dataclass(frozen=True, slots=True)
class Said:
    is_primary: bool
    """Of who says it: a pair has one primary."""
    told: Told


ACTIVATION: Final = Made(Activation, COUNT, COUNT)
TOLD: Final = Made(Told, Choice(State), ACTIVATION, Perhaps(ACTIVATION))
WORDS: Final = Vocabulary("something of a pair", (Said, Made(Said, Flag(), TOLD)))


def encode(said: Said) -> bytes:
    return WORDS.encode(said)


def decode(body: Body) -> Said:
    """Malformed, and no other error, says what is wrong."""
    said: Said = WORDS.decode(body)
    return said
