"""What the members of a cluster say, byte by byte and out of bounds."""

from __future__ import annotations

import msgpack
import pytest

from shmbroker.netbridge.cluster.advert import Binding, Queue
from shmbroker.netbridge.cluster.codec import MAKES_BYTES_MAX, decode, encode
from shmbroker.netbridge.cluster.said import (
    Announcement,
    Answers,
    Arbitrates,
    Ask,
    BackupEnds,
    Counted,
    Counts,
    Decides,
    Ends,
    Forgotten,
    Granted,
    Grouped,
    Here,
    Holds,
    Known,
    Leaving,
    Left,
    Makes,
    OfBackups,
    Offers,
    Proposes,
    Releases,
    Replaces,
    Requests,
    Said,
    Told,
    WhoDecides,
)
from shmbroker.netbridge.wire.malformed import Malformed

NODE, LIFE = b"N" * 16, b"L" * 16
ME = Announcement(NODE, LIFE, 7, 2, "east", "tcp://east:61619", True, ("east", "west"), "tcp://e:5",
                  (LIFE,), NODE)  # fmt: skip
BINDING = Binding("news", "topic", "sports", False, "sports.#", b"\x80", False, True)
BINDING_AS_SENT = ["news", "topic", "sports", False, "sports.#", b"\x80", False, True]
TOLD = Told(
    LIFE,
    True,
    7,
    9,
    (Queue("sports", True, True, False, ("n > 3",)),),
    (BINDING,),
    ("old",),
    (BINDING,),
    NODE,
)
TOLD_AS_SENT = [
    LIFE, True, 7, 9, [["sports", True, True, False, ["n > 3"]]], [BINDING_AS_SENT], ["old"],
    [BINDING_AS_SENT], NODE,
]  # fmt: skip
AS_SENT = [
    NODE, LIFE, 7, 2, "east", "tcp://east:61619", True, ["east", "west"], "tcp://e:5", [LIFE],
    NODE,
]  # fmt: skip
REQUESTS = Requests(4, 2, "shared-store", "", "east", "orders", "", "/store", "", "", "")


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        (Here(ME, 3, 5), [0, AS_SENT, 3, 5]),
        (Known(ME), [1, AS_SENT]),
        (Forgotten(NODE, 9), [2, NODE, 9]),
        (Ask(LIFE, 5), [3, LIFE, 5, b""]),
        (Ask(LIFE, 5, NODE), [3, LIFE, 5, NODE]),
        (TOLD, [4, *TOLD_AS_SENT]),
        (Offers(1, "blue"), [5, 1, "blue"]),
        (Makes(2, b"\x90"), [6, 2, b"\x90"]),
        (Answers(2, "no", "tcp://east:61616"), [7, 2, "no", "tcp://east:61616"]),
        (Arbitrates("mine", 5000, 0), [8, "mine", 5000, 0]),
        (Proposes("orders", "anna", NODE, False), [9, "orders", "anna", NODE, False]),
        (Decides("orders", "anna", NODE, True), [10, "orders", "anna", NODE, True]),
        (Ends("orders", "anna", NODE), [11, "orders", "anna", NODE]),
        (WhoDecides(), [12]),
        (Counts(3), [13, 3]),
        (Counted(3, 2, True, "b", ""), [14, 3, 2, True, "b", ""]),
        (REQUESTS, [15, 4, 2, "shared-store", "", "east", "orders", "", "/store", "", "", ""]),
        (Granted(4, "", "full", False), [16, 4, "", "full", False]),
        (BackupEnds("b", "exit code 1"), [17, "b", "exit code 1"]),
        (Releases(), [18]),
        (Holds(7, True), [19, 7, True]),
        (Left(NODE, 3, LIFE), [20, NODE, 3, LIFE]),
        (Replaces(8, NODE, 3), [21, 8, NODE, 3]),
    ],
)
def test_words_and_bytes(said: Said | Leaving | Grouped | OfBackups, sent: list[object]) -> None:
    assert encode(said) == msgpack.packb(sent)
    assert decode(encode(said)) == said


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        ([22, NODE], "a word of a cluster of kind 22"),
        ([], "of kind None"),
        ([0, AS_SENT, 0, 5], "here: lives is 0"),
        ([1, AS_SENT[:-1]], "is no list of"),
        ([1, [b"short", *AS_SENT[1:]]], "node has 5 bytes"),
        ([1, [*AS_SENT[:-4], ["m"] * 17, "", [], b""]], "is no list of up to 16"),
        ([1, [*AS_SENT[:5], "", *AS_SENT[6:]]], "uri has 0 bytes"),
        ([1, [*AS_SENT[:-2], [NODE] * 256, b""]], "is no list of up to 255"),
        ([2, NODE, -1], "epoch is -1"),
        ([3, LIFE, -1, b""], "ask: version is -1"),
        ([5, 1, "x" * 256], "offers: group has 256 bytes"),
        ([6, 1, b"x" * (MAKES_BYTES_MAX + 1)], "makes: rows has"),
        ([7, -1, "", ""], "answers: number is -1"),
        ([8, "", 5000, 0], "arbitrates: handler has 0 bytes"),
        ([9, "orders", "x" * 256, NODE, False], "proposes: group has 256 bytes"),
        ([9, "orders", "", NODE, False], "proposes: group has 0 bytes"),
        ([10, "orders", "anna", b"short", True], "decides: node has 5 bytes"),
        ([11, "", "anna", NODE], "ends: queue has 0 bytes"),
        (
            [4, *TOLD_AS_SENT[:6], ["old"] * 257, [], b""],
            "a word of a cluster that is not MessagePack",
        ),
        (
            [4, *TOLD_AS_SENT[:4], [["", True, False, True, []]], [], [], [], b""],
            "queues name has 0 bytes",
        ),
        (
            [4, *TOLD_AS_SENT[:4], [["q", True, True, True, ["x" * 513]]], [], [], [], b""],
            "queues selectors has 513 bytes",
        ),
        (
            [4, *TOLD_AS_SENT[:4], [["q", True, True, True, ["x"] * 9]], [], [], [], b""],
            "selectors is no list of up to 8",
        ),
    ],
)
def test_what_is_out_of_bounds(sent: list[object], complaint: str) -> None:
    with pytest.raises(Malformed, match=complaint):
        decode(msgpack.packb(sent))
