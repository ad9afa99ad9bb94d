"""What the ends of a network link say, to bytes and back: the body of a frame `Talk`."""

from __future__ import annotations

from typing import Final

from shmbroker.netbridge.network.demand import NAMES_MAX
from shmbroker.netbridge.network.option import PREFETCH_MAX
from shmbroker.netbridge.network.said import Wants
from shmbroker.netbridge.wire.field import NAME_BYTES_MAX, Flag, Number, Text
from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.vocabulary import Made, Many, Vocabulary

LISTED: Final = Text(3 * NAME_BYTES_MAX, 1)
"""A name in the catalog: what is no UTF-8 is up to three times as long as text."""
NAMES: Final = Many(LISTED, NAMES_MAX)
WORDS: Final = Vocabulary(
    "a word of a network link",
    (Wants, Made(Wants, Number(1, PREFETCH_MAX), Flag(), Flag(), NAMES, NAMES)),
    array_max=NAMES_MAX,
)


def encode(said: Wants) -> bytes:
    return WORDS.encode(said)


def decode(body: Body) -> Wants:
    """Malformed, and no other error, says what is wrong."""
    said: Wants = WORDS.decode(body)
    return said
