"""Frames to bytes and back: what was written is read, and what was not written is Malformed."""

from __future__ import annotations

from dataclasses import MISSING, fields, replace
from random import Random
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.netbridge.remote import body
from shmbroker.netbridge.wire import version
from shmbroker.netbridge.wire.codec import HEAD_BYTES_MAX, LENGTH, decode, encode
from shmbroker.netbridge.wire.field import Bound, Choice, Flag, Number, Octets, Text
from shmbroker.netbridge.wire.frame import (
    COUNT_MAX,
    FRAME_BYTES_MAX,
    KINDS,
    Beat,
    Carrying,
    Challenge,
    Confirm,
    Frame,
    Hello,
    Part,
    Proof,
    Records,
    Refused,
    bounds_of,
    named,
)
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.vocabulary import Vocabulary
from shmbroker.netbridge.wire.words import Level, Refusal, Role, Standing

FUZZED = 20_000
HELLO = Hello(
    low=1,
    high=1,
    node=bytes(16),
    incarnation=bytes(range(16)),
    name="east",
    standing=Standing.LIVE,
    epoch=7,
    vhost="/",
    link="east-west",
    attempt=3,
    role=Role.CLUSTER,
    user="cluster",
    challenge=bytes(32),
    beat_ms=200,
    frame_bytes=4 << 20,
)


def values(bound: Bound) -> st.SearchStrategy[Any]:
    if isinstance(bound, Number):
        return st.integers(bound.least, bound.most)
    if isinstance(bound, Flag):
        return st.booleans()
    if isinstance(bound, Text):
        most = bound.most // 4
        return st.text(st.characters(codec="utf-8"), min_size=bound.least, max_size=most)
    if isinstance(bound, Octets):
        return st.binary(min_size=bound.least, max_size=bound.most)
    assert isinstance(bound, Choice)
    return st.sampled_from(list(bound.of))


def whole(kind: type[Frame]) -> st.SearchStrategy[Frame]:
    """Frames of a kind whose fields agree with each other."""
    drawn = {name: values(bound) for name, bound in bounds_of(kind)}
    if issubclass(kind, Carrying):
        drawn["body"] = st.binary(max_size=256)
    if kind is Records:
        drawn |= {"first": st.integers(0, 1000), "end": st.integers(1001, 2000)}
        drawn |= {"messages": st.just(1), "body": st.just(bytes(64))}
    if kind is Part:
        drawn |= {"offset": st.integers(0, 100), "total": st.integers(400, 1 << 31)}
        drawn["body"] = st.binary(min_size=1, max_size=256)
    if kind is Hello:
        drawn |= {"low": st.integers(1, 5), "high": st.integers(5, 9)}
    if kind.__name__ == "Opened":
        drawn |= {"confirmed": st.integers(0, 9), "mark": st.integers(9, 99)}
    return st.builds(kind, **drawn)


FRAMES = st.one_of([whole(kind) for kind in KINDS])


@given(frame=FRAMES, number=st.integers(0, COUNT_MAX))
@settings(max_examples=200)
def test_what_was_written_is_read(frame: Frame, number: int) -> None:
    message = encode(frame, number)
    assert len(head_of(message)) <= HEAD_BYTES_MAX
    assert decode(message, FRAME_BYTES_MAX) == (number, frame)


@given(st.binary(max_size=200), st.binary(max_size=50))
@settings(max_examples=300)
def test_any_bytes_are_a_frame_or_malformed(head: bytes, more: bytes) -> None:
    with_error(head + more)
    with_error(message(head, more))


@given(st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats() | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(), inner, max_size=3),
))  # fmt: skip
@settings(max_examples=300)
def test_any_messagepack_is_a_frame_or_malformed(value: Any) -> None:
    with_error(message(msgpack.packb(value)))
    with_error(message(msgpack.packb([3, 0, *([value] * 10)])))


def message(head: bytes, body: bytes = b"") -> bytes:
    return LENGTH.pack(len(head)) + head + body


def head_of(whole: bytes) -> bytes:
    return whole[LENGTH.size :][: LENGTH.unpack_from(whole)[0]]


def with_error(whole: bytes) -> str:
    """What is wrong with a frame, "" if it is one."""
    try:
        decode(whole, FRAME_BYTES_MAX)
    except Malformed as error:
        return str(error)
    return ""


def damaged(random: Random, head: bytes) -> bytes:
    """Flipped, cut, or repeated in a part."""
    at = random.randrange(len(head))
    kind = random.randrange(3)
    if kind == 0:
        return head[:at] + bytes([head[at] ^ 1 << random.randrange(8)]) + head[at + 1 :]
    end = random.randrange(at, len(head)) + 1
    return head[:at] + head[end:] if kind == 1 else head[:end] + head[at:]


def examples() -> list[bytes]:
    frames = [HELLO, Challenge(bytes(16)), Beat(9), Refused(Refusal.PASSIVE, "not active", "")]
    frames += [Records(1, 10, 20, 2, False, bytes(96)), Part(1, 9, 0, 80, True, bytes(40))]
    frames += [Confirm(3, 99, Level.DISK)]
    return [encode(frame, 5) for frame in frames]


def test_damaged_frames_are_frames_or_malformed() -> None:
    random = Random(1)
    seen = set()
    for _ in range(FUZZED):
        whole = random.choice(examples_made)
        head = head_of(whole)
        body = whole[LENGTH.size + len(head) :]
        seen.add(with_error(message(damaged(random, head), body)).split(" ")[0])
        with_error(damaged(random, whole))
    assert len(seen) > 10, "of each kind something was found"


examples_made = examples()


def test_every_cut_of_every_frame_is_malformed() -> None:
    for whole in examples_made:
        head = head_of(whole)
        body = whole[LENGTH.size + len(head) :]
        for end in range(len(head)):
            assert with_error(message(head[:end], body))
            assert with_error(whole[: LENGTH.size + end])
        assert body or with_error(whole + b"more")


@pytest.mark.parametrize(("change", "said"), [
    ({"node": bytes(15)}, "hello: node has 15 bytes, not 16 to 16"),
    ({"epoch": -1}, "hello: epoch is -1, not 0 to"),
    ({"epoch": True}, "hello: epoch is bool, not a number"),
    ({"name": ""}, "hello: name has 0 bytes, not 1 to 255"),
    ({"name": "x" * 256}, "hello: name has 256 bytes"),
    ({"name": b"bytes"}, "hello: name is bytes, not text"),
    ({"role": "king"}, "hello: role is none of client, cluster"),
    ({"role": ["client"]}, "hello: role is none of"),
    ({"beat_ms": 5}, "hello: beat_ms is 5, not 10 to 60000"),
    ({"low": 2}, "hello: low is 2, above high, 1"),
    ({"challenge": None}, "hello: challenge is NoneType, not bytes"),
])  # fmt: skip
def test_an_error_names_the_field_and_what_it_may_be(change: dict[str, Any], said: str) -> None:
    plain = {name: bound.write(getattr(HELLO, name)) for name, bound in bounds_of(Hello)}
    head = msgpack.packb([0, 0, *(plain | change).values()])
    assert said in with_error(message(head))


@pytest.mark.parametrize("whole", [b"", b"a", b"abc", bytes(4), bytes(9), b"\xff" * 9])
def test_the_head_is_inside(whole: bytes) -> None:
    assert "a frame with a head of" in with_error(whole)


@pytest.mark.parametrize(("parts", "said"), [
    ([b"\x90" * (HEAD_BYTES_MAX + 1)], "with a head of 8193 bytes"),
    ([msgpack.packb({"kind": 1})], "not MessagePack"),
    ([msgpack.packb(7)], "no list"),
    ([msgpack.packb([len(KINDS), 0])], f"no kind of frames {len(KINDS)}"),
    ([msgpack.packb(["hello", 0])], "no kind of frames 'hello'"),
    ([msgpack.packb([16, -1, 0])], "beat: the number of the frame is no number"),
    ([msgpack.packb([16, 0, 1]), b"body"], "beat: 4 bytes behind the head"),
    ([msgpack.packb([10, 0, 1, 0, 1, 1, False])], "records: 0 bytes are no 1 records"),
    ([msgpack.packb([16, 0, 1, 2])], "beat: 2 fields, not 1"),
    ([msgpack.packb([[[[]]], 0])], "no kind of frames"),
    ([b"\xdd\xff\xff\xff\xff"], "not MessagePack"),
    ([b"\xc6\xff\xff\xff\xff"], "not MessagePack"),
    ([msgpack.packb([16, 0, msgpack.Timestamp(1)])], "not MessagePack"),
])  # fmt: skip
def test_what_is_wrong_is_said(parts: list[bytes], said: str) -> None:
    assert said in with_error(message(*parts))


@pytest.mark.parametrize("depth", [100, 980, 1000, 1020])
def test_lists_in_lists_are_malformed_however_deep(depth: int) -> None:
    """Deeper than Python shows them, and not too deep for MessagePack."""
    deep = b"\x91" * depth + b"\xc0"
    assert "no kind of frames" in with_error(message(b"\x92" + deep + b"\x00"))
    plain = [bound.write(getattr(HELLO, name)) for name, bound in bounds_of(Hello)]
    for at, (name, _) in enumerate(bounds_of(Hello)):
        packed = [msgpack.packb(each) for each in (0, 0, *plain)]
        packed[2 + at] = deep
        head = msgpack.Packer().pack_array_header(len(packed)) + b"".join(packed)
        assert f"hello: {name} " in with_error(message(head))
    with pytest.raises(Malformed, match="a word of kind"):
        Vocabulary("a word").decode(b"\x91" + deep)
    with pytest.raises(InvalidArgument, match="'queue' of a command is"):
        body.named(body.told(b"\x81\xa5queue" + deep), "queue")


@pytest.mark.parametrize(("frame", "said"), [
    (Records(0, 5, 5, 1, False, bytes(32)), "1 messages from 5 to 5"),
    (Records(0, 0, 9, 1, False, bytes(31)), "31 bytes are no 1 records"),
    (Records(0, 0, 9, 2, False, bytes(32)), "32 bytes are no 2 records"),
    (Part(0, 0, 0, 100, False, b""), "a part without bytes"),
    (Part(0, 0, 96, 100, False, bytes(8)), "a part up to 104 of 100 bytes"),
    (Proof(b""), "proof: proof has 0 bytes"),
])  # fmt: skip
def test_what_contradicts_itself_is_not_even_written(frame: Frame, said: str) -> None:
    with pytest.raises(Malformed, match=said.replace("(", "[(]")):
        encode(frame, 0)


def test_a_frame_is_not_larger_than_agreed() -> None:
    whole = encode(Records(0, 0, 1, 1, False, bytes(1 << 16)), 0)
    with pytest.raises(Malformed, match="bytes in all"):
        decode(whole, 1 << 16)


def test_a_newer_version_may_say_more_in_a_hello_but_in_nothing_that_is_agreed() -> None:
    head = msgpack.unpackb(head_of(encode(replace(HELLO, high=9), 0)))
    newer = message(msgpack.packb([*head, "more", 5]))
    assert decode(newer, 1 << 16) == (0, replace(HELLO, high=9))
    beat = msgpack.unpackb(head_of(encode(Beat(1), 0)))
    assert with_error(message(msgpack.packb([*beat, "more"])))


@pytest.mark.parametrize(("low", "high", "common"), [
    (1, 1, 1), (1, 9, version.HIGHEST), (version.HIGHEST + 1, 9, None),
])  # fmt: skip
def test_the_highest_common_version_is_spoken(low: int, high: int, common: int | None) -> None:
    assert version.agreed(low, high) == common


def test_every_field_has_bounds_and_every_kind_a_name_of_its_own() -> None:
    assert len({named(kind) for kind in KINDS}) == len(KINDS)
    for kind in KINDS:
        bounded = [name for name, _ in bounds_of(kind)]
        declared = [each.name for each in fields(kind)]  # type: ignore[arg-type]
        assert declared == bounded + ["body"] * issubclass(kind, Carrying)
        assert all(each.default is MISSING for each in fields(kind)[: len(bounded)])  # type: ignore[arg-type]
