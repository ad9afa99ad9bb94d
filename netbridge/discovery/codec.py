"""An announcement as bytes: of a datagram, or of a file of a registry.

    label (8)  signature (32)  MessagePack of the announcement

The signature is looked at before anything behind it is read.
"""

from __future__ import annotations

from typing import Final

from shmbroker.netbridge.discovery.announcement import Announcement
from shmbroker.netbridge.election.codec import NODE
from shmbroker.netbridge.plan.text import heard
from shmbroker.netbridge.security.signature import SIGNATURE_BYTES, Signature
from shmbroker.netbridge.wire.field import NAME_BYTES_MAX, Flag, Number, Octets, Text
from shmbroker.netbridge.wire.frame import ID_BYTES
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.vocabulary import COUNT, Made, Vocabulary

LABEL: Final = b"shmbann1"
HEAD_BYTES: Final = len(LABEL) + SIGNATURE_BYTES
URI_BYTES_MAX: Final = 512
BYTES_MAX: Final = 1200
"""So a datagram is one packet, wherever it goes."""
PERIOD_MS_MIN: Final = 100
PERIOD_MS_MAX: Final = 3_600_000
WORDS: Final = Vocabulary(
    "an announcement",
    (Announcement, Made(
        Announcement, NODE, Octets(ID_BYTES, ID_BYTES), COUNT, Number(1, (1 << 63) - 1),
        Text(NAME_BYTES_MAX, 1), Text(URI_BYTES_MAX, 1), Flag(), COUNT,
        Number(PERIOD_MS_MIN, PERIOD_MS_MAX),
    )),
)  # fmt: skip


class Stranger(Malformed):
    """It is signed with another secret, or it is none of ours."""


def encode(what: Announcement, signature: Signature) -> bytes:
    body = WORDS.encode(what)
    return LABEL + signature.of(body) + body


def decode(data: bytes, signature: Signature) -> Announcement:
    """Stranger, Malformed, and no other error, say what is wrong."""
    if len(data) > BYTES_MAX or not data.startswith(LABEL) or len(data) < HEAD_BYTES:
        raise Stranger(f"{len(data)} bytes that are no announcement")
    body = data[HEAD_BYTES:]
    if not signature.is_of(body, data[len(LABEL) : HEAD_BYTES]):
        raise Stranger("an announcement that is signed with another secret")
    found: Announcement = WORDS.decode(body)
    return found


def check_uri(text: str) -> None:
    """Malformed: nobody is reached there."""
    found = heard(text)
    if found is None:
        raise Malformed(f"announcement: uri {text!r:.80} is no address of a broker")
    if found.is_anywhere:
        raise Malformed(f"announcement: nobody can connect to {text!r:.80}")
