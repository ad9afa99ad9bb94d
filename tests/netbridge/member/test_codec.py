"""What members say, and what they write, to bytes and back; all else is Malformed."""

from __future__ import annotations

from random import Random
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shmbroker.ipc.journal.place import Place
from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import Copy, Grant
from shmbroker.netbridge.member.codec import Here, decode, encode, packed, written
from shmbroker.netbridge.member.said import (
    Accept,
    AskBack,
    Closing,
    Dropped,
    GoAhead,
    Hello,
    InSync,
    Join,
    Joined,
    Leave,
    NoFailback,
    NotJoined,
    Offer,
    Resumed,
    Said,
    TakeOver,
    YouHold,
)
from shmbroker.netbridge.member.standing import (
    Began,
    Copies,
    HandedOver,
    Parked,
    Position,
    Voted,
)
from shmbroker.netbridge.member.written import Written, place_of, position_of
from shmbroker.netbridge.wire.malformed import Malformed

FUZZED = 20_000
COPIES = (Copy("a"), Copy("b", "boot 1"))
GRANT = Grant(7, "a", COPIES)
WRITTEN = Written(4, 7, "a", COPIES, handed_to="b")
POSITION = position_of(Place(3 << 32 | 12, 6, 0xDEADBEEF, 0x12345678), WRITTEN)
EXAMPLES: list[Said | Here] = [
    Here("east", 4711, 123456, "boot 1", "pid:[4026531836]", "tcp://east:61616", "ZooKeeper /b"),
    Hello(b"N" * 16, POSITION, True, 7),
    Hello(b"N" * 16, POSITION, False, 7, life="a 2", dead=("b 1", "c 1"), claim=3, is_parked=True),
    Join(b"", Position(), True, False, "boot 1", 3),
    Joined(7, False, 3),
    NotJoined("already-replicating", 3),
    InSync(7),
    Dropped("no progress"),
    Leave(),
    Closing(),
    Resumed(),
    Offer(),
    GoAhead(3),
    Accept(),
    TakeOver(GRANT),
    YouHold(GRANT),
    AskBack(),
    NoFailback("another backup is in sync"),
]

counts = st.integers(0, (1 << 63) - 1)
words = st.integers(0, (1 << 32) - 1)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)
boots = st.text(st.characters(codec="ascii"), max_size=64)
ledgers = st.lists(
    st.tuples(
        st.binary(min_size=16, max_size=16),
        st.builds(Ledger, st.none() | st.just(Grant(7, "a", (Copy("a"),))), counts),
    ),
    max_size=3,
).map(tuple)
copies = st.lists(st.builds(Copy, names, boots), max_size=4).map(tuple)
WRITTENS = st.builds(
    Written, counts, st.integers(1, 1 << 62), names, copies, st.booleans(), st.just("") | names,
    st.booleans(), st.booleans(), ledgers,
)  # fmt: skip
PLACES = st.builds(Place, st.integers(1, (1 << 63) - 1), st.integers(0, 1 << 62), words, words)


def error_of(body: bytes) -> str:
    try:
        decode(body)
    except Malformed as error:
        return str(error)
    return ""


@pytest.mark.parametrize("said", EXAMPLES, ids=lambda said: type(said).__name__)
def test_what_was_written_is_read(said: Said | Here) -> None:
    assert decode(encode(said)) == said


@given(found=WRITTENS)
@settings(max_examples=100)
def test_a_record_is_bytes_and_back(found: Written) -> None:
    assert written(packed(found)) == found


@given(place=PLACES, found=WRITTENS)
@settings(max_examples=100)
def test_a_frame_has_its_place_and_comes_behind_those_of_older_epochs(
    place: Place, found: Written
) -> None:
    position = position_of(place, found)
    assert place_of(position) == place
    assert (position.epoch, position.holder) == (found.epoch, found.holder)
    later = position_of(Place(1, 1, 0, 0), Written(1, found.epoch + 1, "z"))
    assert later.number > position.number


def test_each_record_replaces_the_one_before_and_says_all() -> None:
    began = Written().after(Began(7, "a", COPIES))
    alone = began.after(Copies((Copy("a"),)))
    assert began.age < alone.age
    assert alone.records == (Began(7, "a", (Copy("a"),)),)
    assert alone.after(HandedOver("b")).records[1] == HandedOver("b")
    for parked in (Parked(), Parked(all_know=True)):
        assert alone.after(Parked()).after(parked).records[1] == parked
    again = alone.after(Parked()).after(Began(8, "b", COPIES, is_forced=True))
    assert again == Written(1, 8, "b", COPIES, is_forced=True)
    assert again.age > alone.age


def test_what_was_granted_to_members_of_other_nodes_is_kept_over_epochs() -> None:
    ledgers = ((b"N" * 16, Ledger(Grant(3, "x", (Copy("x"),)), 5)),)
    voted = Written().after(Began(7, "a", COPIES)).after(Voted(ledgers))
    assert voted.records == (Began(7, "a", COPIES),)
    for record in (Copies((Copy("a"),)), HandedOver("b"), Parked(), Began(8, "b", COPIES)):
        voted = voted.after(record)
        assert voted.ledgers == ledgers


def test_words_for_people_are_cut() -> None:
    told = decode(encode(Dropped("ü" * 1000)))
    assert isinstance(told, Dropped)
    assert told.reason == "ü" * 256


@given(st.binary(max_size=200))
@settings(max_examples=200)
def test_any_bytes_are_a_word_or_malformed(body: bytes) -> None:
    error_of(body)


@given(st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats() | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(), inner, max_size=3),
))  # fmt: skip
@settings(max_examples=200)
def test_any_messagepack_is_a_word_or_malformed(value: Any) -> None:
    error_of(msgpack.packb(value))
    for kind in range(16):
        error_of(msgpack.packb([kind, *([value] * 4)]))


def test_damaged_words_are_words_or_malformed() -> None:
    random = Random(1)
    for _ in range(FUZZED):
        whole = encode(random.choice(EXAMPLES))
        at = random.randrange(len(whole))
        end = random.randrange(at, len(whole)) + 1
        kind = random.randrange(3)
        if kind == 0:
            damaged = whole[:at] + bytes([whole[at] ^ 1 << random.randrange(8)]) + whole[at + 1 :]
        else:
            damaged = whole[:at] + whole[end:] if kind == 1 else whole[:end] + whole[at:]
        error_of(damaged)


def test_every_cut_is_malformed() -> None:
    for each in EXAMPLES:
        whole = encode(each)
        assert all(error_of(whole[:end]) for end in range(len(whole)))
        assert error_of(whole + b"\xc0")
