"""What the ends of an agent's link say, to bytes and back: the body of a frame `Talk`."""

from __future__ import annotations

from typing import Final

from shmbroker.netbridge.agent.option import HOPS_MAX
from shmbroker.netbridge.agent.said import Apart, Bound, Joined, Joins, Said, Wanted, Wants
from shmbroker.netbridge.agent.subscription import PAGE
from shmbroker.netbridge.wire.field import (
    NAME_BYTES_MAX,
    REASON_BYTES_MAX,
    Flag,
    Number,
    Octets,
    Text,
)
from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.vocabulary import Made, Many, Vocabulary

PAYLOAD: Final = 448
"""Bytes of a binding's key and arguments."""
NAME: Final = Text(NAME_BYTES_MAX, 1)
BINDINGS: Final = Many(Made(Wanted, Text(3 * PAYLOAD), Octets(0, PAYLOAD), Flag()), PAGE)
WORDS: Final = Vocabulary(
    "a word of an agent",
    (Joins, Made(Joins, NAME, Text(16, 1))),
    (Joined, Made(Joined)),
    (Apart, Made(Apart, Text(REASON_BYTES_MAX))),
    (Wants, Made(Wants, Number(1, HOPS_MAX), Flag(), BINDINGS, BINDINGS)),
    (Bound, Made(Bound)),
    array_max=PAGE,
)


def encode(said: Said) -> bytes:
    return WORDS.encode(said)


def decode(body: Body) -> Said:
    """Malformed, and no other error, says what is wrong."""
    said: Said = WORDS.decode(body)
    return said
