"""What the ends of an agent's link say, as bytes."""

from __future__ import annotations

import msgpack
import pytest

from shmbroker.netbridge.agent.codec import decode, encode
from shmbroker.netbridge.agent.said import Apart, Bound, Joined, Joins, Said
from shmbroker.netbridge.wire.malformed import Malformed


@pytest.mark.parametrize(
    "said", [Joins("trade", "topic"), Joined(), Bound(), Apart("it is another one")]
)
def test_there_and_back(said: Said) -> None:
    assert decode(encode(said)) == said
    assert encode(said) == encode(decode(encode(said)))


@pytest.mark.parametrize(
    "said", [[], [3], [0, "trade"], [0, "", "topic"], [0, "x" * 256, "topic"], [1, 1], [2, 5], 7]
)
def test_what_is_none(said: object) -> None:
    with pytest.raises(Malformed):
        decode(msgpack.packb(said))


def test_bytes_that_are_cut_or_changed() -> None:
    whole = encode(Joins("trade", "topic"))
    for length in range(len(whole)):
        with pytest.raises(Malformed):
            decode(whole[:length])
    for at in range(len(whole)):
        for flip in (0x01, 0x80, 0xFF):
            changed = bytearray(whole)
            changed[at] ^= flip
            try:
                decode(bytes(changed))
            except Malformed:
                continue
