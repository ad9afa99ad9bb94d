"""What the members of a cluster say, byte by byte and out of bounds."""

from __future__ import annotations

import msgpack
import pytest

from shmbroker.netbridge.cluster.codec import decode, encode
from shmbroker.netbridge.cluster.said import Announcement, Forgotten, Here, Known, Said
from shmbroker.netbridge.wire.malformed import Malformed

NODE, LIFE = b"N" * 16, b"L" * 16
ME = Announcement(NODE, LIFE, 7, 2, "east", "tcp://east:61619", True, ("east", "west"))
AS_SENT = [NODE, LIFE, 7, 2, "east", "tcp://east:61619", True, ["east", "west"]]


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        (Here(ME, 3, 5), [0, AS_SENT, 3, 5]),
        (Known(ME), [1, AS_SENT]),
        (Forgotten(NODE, 9), [2, NODE, 9]),
    ],
)
def test_words_and_bytes(said: Said, sent: list[object]) -> None:
    assert encode(said) == msgpack.packb(sent)
    assert decode(encode(said)) == said


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        ([3, NODE], "a word of a cluster of kind 3"),
        ([], "of kind None"),
        ([0, AS_SENT, 0, 5], "here: lives is 0"),
        ([1, AS_SENT[:-1]], "is no list of"),
        ([1, [b"short", *AS_SENT[1:]]], "node has 5 bytes"),
        ([1, [*AS_SENT[:-1], ["m"] * 17]], "a word of a cluster that is not MessagePack"),
        ([1, [*AS_SENT[:5], "", *AS_SENT[6:]]], "uri has 0 bytes"),
        ([2, NODE, -1], "epoch is -1"),
    ],
)
def test_what_is_out_of_bounds(sent: list[object], complaint: str) -> None:
    with pytest.raises(Malformed, match=complaint):
        decode(msgpack.packb(sent))
