"""What the ends of an agent's link say, to bytes and back: the body of a frame `Talk`."""

from __future__ import annotations

from typing import Final

from shmbroker.netbridge.agent.said import Apart, Joined, Joins, Said
from shmbroker.netbridge.wire.field import NAME_BYTES_MAX, REASON_BYTES_MAX, Text
from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.vocabulary import Made, Vocabulary

NAME: Final = Text(NAME_BYTES_MAX, 1)
WORDS: Final = Vocabulary(
    "a word of an agent",
    (Joins, Made(Joins, NAME, Text(16, 1))),
    (Joined, Made(Joined)),
    (Apart, Made(Apart, Text(REASON_BYTES_MAX))),
)


def encode(said: Said) -> bytes:
    return WORDS.encode(said)


def decode(body: Body) -> Said:
    """Malformed, and no other error, says what is wrong."""
    said: Said = WORDS.decode(body)
    return said
