"""Announcements as bytes: what is accepted, and that no bytes do more than being ignored."""

from __future__ import annotations

import random
from dataclasses import replace

import msgpack
import pytest

from shmbroker.netbridge.discovery.announcement import Announcement
from shmbroker.netbridge.discovery.codec import (
    BYTES_MAX,
    HEAD_BYTES,
    LABEL,
    Stranger,
    decode,
    encode,
)
from shmbroker.netbridge.discovery.entries import Entries
from shmbroker.netbridge.security.signature import Signature
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.malformed import Malformed

TOWN = Signature([Stretched("town", "correct horse battery")], "registry town")
EAST = Announcement(b"E" * 16, b"1" * 16, 1000, 1, "east", "tcp://east:61619", True, 7, 2000)
AS_SENT = [0, b"E" * 16, b"1" * 16, 1000, 1, "east", "tcp://east:61619", True, 7, 2000]


def signed(*sent: object) -> bytes:
    body = msgpack.packb(list(sent))
    return LABEL + TOWN.of(body) + body


def test_words_and_bytes() -> None:
    assert encode(EAST, TOWN) == signed(*AS_SENT)
    assert decode(signed(*AS_SENT), TOWN) == EAST


def test_the_longest_is_one_packet() -> None:
    longest = replace(EAST, name="n" * 255, uri="tcp://" + "h" * 506, epoch=(1 << 63) - 1,
                      started=(1 << 63) - 1, sequence=(1 << 63) - 1)  # fmt: skip
    data = encode(longest, TOWN)
    assert len(data) <= BYTES_MAX
    assert decode(data, TOWN) == longest
    body = bytes(BYTES_MAX - HEAD_BYTES + 1)
    with pytest.raises(Stranger):  # though it is signed
        decode(LABEL + TOWN.of(body) + body, TOWN)


@pytest.mark.parametrize(
    ("place", "value", "complaint"),
    [
        (0, 1, "an announcement of kind 1"),
        (1, b"short", "node has 5 bytes"),
        (2, "text", "incarnation is str"),
        (3, -1, "started is -1"),
        (4, 0, "sequence is 0"),
        (5, "", "name has 0 bytes"),
        (6, "u" * 513, "uri has 513 bytes"),
        (7, 1, "is_live is int"),
        (8, 1 << 63, "epoch is 9223372036854775808"),
        (9, 99, "period_ms is 99"),
        (9, 3_600_001, "period_ms is 3600001"),
    ],
)
def test_out_of_bounds_though_it_is_signed(place: int, value: object, complaint: str) -> None:
    sent = [*AS_SENT[:place], value, *AS_SENT[place + 1 :]]
    with pytest.raises(Malformed, match=complaint) as error:
        decode(signed(*sent), TOWN)
    assert not isinstance(error.value, Stranger)


def test_every_byte_flipped_cut_or_more() -> None:
    """All of it is signed."""
    data = encode(EAST, TOWN)
    for place in range(len(data)):
        for bit in range(8):
            other = bytearray(data)
            other[place] ^= 1 << bit
            with pytest.raises(Stranger):
                decode(bytes(other), TOWN)
        with pytest.raises(Stranger):
            decode(data[:place], TOWN)
    with pytest.raises(Stranger):
        decode(data + b"\0", TOWN)


def test_any_bytes_behind_a_good_signature_are_ignored() -> None:
    """As somebody sends them who knows the secret."""
    noise = random.Random(20261125)  # of no secret
    entries = Entries(10.0, TOWN)
    good = msgpack.packb(AS_SENT)
    for _ in range(3000):
        body = bytearray(good)
        for _ in range(noise.randint(1, 4)):
            body[noise.randrange(len(body))] = noise.randrange(256)
        body = body[: noise.randint(0, len(body))] if noise.random() < 0.3 else body
        entries.heard(LABEL + TOWN.of(bytes(body)) + bytes(body), 0.0)
    for size in (0, 1, HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 1, BYTES_MAX, BYTES_MAX + 1, 65507):
        entries.heard(noise.randbytes(size), 0.0)
        entries.heard((LABEL + noise.randbytes(size))[:size], 0.0)
    assert entries.ignored["strangers"] == 16
    assert entries.ignored["malformed"] > 1000
    still = replace(EAST, name="still", incarnation=b"9" * 16)
    entries.heard(encode(still, TOWN), 20.0)
    assert "still" in [each.name for each in entries.found]


def test_nothing_shows_a_key() -> None:
    assert "***" in repr(TOWN)
    with pytest.raises(TypeError, match="not pickled"):
        TOWN.__reduce__()
