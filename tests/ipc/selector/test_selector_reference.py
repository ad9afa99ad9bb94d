"""Selectors against a plain evaluator in Python, and patterns against regular expressions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shmbroker import Selector
from shmbroker.core import opcodes as op
from shmbroker.ipc._native import ffi, lib
from tests.support.selector_reference import (
    Between,
    Calculation,
    Chain,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Name,
    Node,
    Not,
    Sign,
    of_property,
)

ROOT = Path(__file__).parents[3]


FREE_NAMES = ["a", "b", "c", "odd name"]
NUMBER_NAMES = ["JMSPriority", "JMSTimestamp", "$size", "$deliveries", "JMSDeliveryCount"]
TEXT_NAMES = ["$key", "JMSType"]
ALPHABET = "ab%_é😀!"

short_texts = st.text(ALPHABET, max_size=5)
edges = st.sampled_from([-(1 << 63), 1 - (1 << 63), (1 << 63) - 1, (1 << 63) - 2, 1 << 53])
integers = st.integers(-4, 4) | edges | st.integers(-(1 << 63), (1 << 63) - 1)
floats = st.sampled_from([0.0, -0.0, 0.5, 2.0, 1e300, 5e-324])
free = st.builds(Name, st.sampled_from(FREE_NAMES))
numbers: st.SearchStrategy[Node] = st.recursive(
    free
    | st.builds(Constant, integers | floats | st.floats(allow_nan=False, allow_infinity=False))
    | st.builds(Name, st.sampled_from(NUMBER_NAMES)),
    lambda inner: (
        st.builds(Sign, st.sampled_from("+-"), inner)
        | st.builds(Calculation, inner, st.sampled_from("+-*/"), inner)
    ),
    max_leaves=5,
)
text_names = st.builds(Name, st.sampled_from(TEXT_NAMES + FREE_NAMES))
texts: st.SearchStrategy[Node] = text_names | st.builds(Constant, short_texts)
flags = st.booleans()


@st.composite
def likes(draw: st.DrawFn) -> Like:
    escape = draw(st.sampled_from(["", "!", "a", "%"]))
    plain = st.sampled_from([each for each in ALPHABET if each != escape])
    escaped = st.sampled_from(ALPHABET).map(lambda each: escape + each)
    pattern = draw(st.lists(plain | escaped if escape else plain, max_size=5).map("".join))
    return Like(draw(text_names), draw(flags), pattern, escape)


constants = st.one_of(
    st.lists(st.builds(Constant, short_texts), min_size=1, max_size=4),
    st.lists(st.builds(Constant, integers | floats), min_size=1, max_size=4),
).map(tuple)
conditions = st.one_of(
    free,
    st.builds(Constant, flags),
    st.builds(Comparison, numbers, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), numbers),
    st.builds(Comparison, texts, st.sampled_from(["=", "<>"]), texts),
    st.builds(Comparison, free, st.sampled_from(["=", "<>"]), texts | st.builds(Constant, flags)),
    st.builds(Between, numbers, flags, numbers, numbers),
    st.builds(In, free, flags, constants),
    likes(),
    st.builds(IsNull, text_names, flags),
)
expressions: st.SearchStrategy[Node] = st.recursive(
    conditions,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(
            Chain,
            st.sampled_from(["AND", "OR"]),
            st.lists(inner, min_size=2, max_size=4).map(tuple),
        )
        | st.builds(Comparison, inner, st.sampled_from(["=", "<>"]), st.builds(Constant, flags))
    ),
    max_leaves=10,
)
values = st.one_of(
    integers,
    floats,
    flags,
    short_texts,
    st.none(),
    st.integers(1 << 63, (1 << 64) - 1),
    st.floats(),
    st.binary(max_size=3),
    st.lists(st.integers(0, 300), max_size=3),
)
properties_of = st.dictionaries(
    st.sampled_from([*FREE_NAMES, *TEXT_NAMES, *NUMBER_NAMES, "more", "and more"]), values
)


@settings(max_examples=700)
@given(
    expressions,
    properties_of,
    st.sampled_from(["", "a", "é", "b%"]),
    st.integers(0, 9),
    st.sampled_from([0, 1, 3_000_000]),
    st.integers(0, 3),
)
def test_as_the_reference(
    expression: Node,
    properties: dict[str, Any],
    key: str,
    priority: int,
    published_at: int,
    deliveries: int,
) -> None:
    known = {name: of_property(value) for name, value in properties.items()}
    known |= {"JMSPriority": priority, "$size": 3, "$deliveries": deliveries}
    known |= {"JMSDeliveryCount": deliveries + 1, "$key": key or None}
    if published_at:
        known["JMSTimestamp"] = published_at // 1_000_000
    selector = Selector(expression.text())
    selected = selector.matches(
        properties,
        key=key,
        size=3,
        priority=priority,
        published_at=published_at,
        deliveries=deliveries,
    )
    assert selected == (expression.value(known) is True), expression.text()


@given(st.lists(st.sampled_from(["a", "é", "%", "_", "b"]), max_size=8), short_texts | st.text())
def test_like_as_a_regular_expression(pattern: list[str], text: str) -> None:
    node = Like(Name("a"), False, "".join(pattern), "")
    assert Selector(node.text()).matches({"a": text}) == node.value({"a": text})


pieces = st.sampled_from(["a", "b", "aa", "ab", "é", "😀", "_", "a_", "_é", "%", "%a%", "%_%"])
few = st.text("abé😀", max_size=40)


@settings(max_examples=500)
@given(st.lists(pieces, max_size=8).map("".join), few)
def test_like_of_texts_that_nearly_fit(pattern: str, text: str) -> None:
    node = Like(Name("a"), False, pattern, "")
    assert Selector(node.text()).matches({"a": text}) == node.value({"a": text})


@given(st.text("ab_", min_size=1, max_size=op.PART_BYTES_MAX), few, few)
def test_like_with_parts_of_any_length(part: str, before: str, behind: str) -> None:
    held = before + part.replace("_", "é") + behind
    for text in (held, held[:-1], held[1:]):
        node = Like(Name("a"), False, f"%{part}%", "")
        assert Selector(node.text()).matches({"a": text}) == node.value({"a": text})


SLOWEST = {
    "a part that nearly fits everywhere": f"%{'a' * 15_000}b%",
    "one that differs in the middle": f"%{'a' * 7_500}b{'a' * 7_500}%",
    "one with a _": f"%{'a' * 30}_{'a' * 32}b%",
    "short ones": "%aaab%",
    "many parts": f"%{'a%' * 110}b%",
    "an end that nearly fits": f"%{'a' * 120}_b{'a' * 120}",
}


@pytest.mark.parametrize("name", SLOWEST)
def test_no_pattern_makes_a_message_expensive(name: str) -> None:
    """As many LIKEs as there may be, on the longest of texts.  The watchdog is far away: some of
    these selectors took seconds, each of the 20 times."""
    pattern = SLOWEST[name]
    count = min(op.LIKES_MAX, 16_000 // (len(pattern) + 14))
    selector = " OR ".join([f"a LIKE '{pattern}'"] * count)
    program = f"""
from shmbroker import Selector
selector = Selector({selector!r})
assert not any(selector.matches({{"a": "a" * 60_000}}) for _ in range(20))
"""
    subprocess.run([sys.executable, "-c", program], timeout=30, check=True)


@pytest.mark.parametrize("width", ["f", "d"])
@pytest.mark.parametrize("size", [1, 40, 300, 70_000])
def test_every_encoding_of_messagepack(width: str, size: int) -> None:
    """Lengths and counts of each size, before and around what is looked for."""
    packer = msgpack.Packer(use_single_float=width == "f")
    name = "n" * size
    around: dict[str, Any] = {"list": list(range(size)), "map": {str(n): n for n in range(20)}}
    around |= {"bytes": b"x" * size, "text": "y" * size, "half": 0.5, "ext": 0}
    around |= {f"e{n}": msgpack.ExtType(1, bytes(n)) for n in (1, 2, 3, 4, 8, 16, 17, size)}
    for number in (0, 127, 128, 255, 256, 65536, 1 << 32, -1, -32, -33, -129, -32769, -(1 << 40)):
        packed = packer.pack({**around, name[:16_000]: number})
        subject = ffi.new("sb_subject *")
        subject.properties, subject.properties_length = ffi.from_buffer(packed), len(packed)
        program = Selector(f"half = 0.5 AND {name[:16_000]} = {number}").program
        assert lib.sb_selector_matches(program, len(program), subject) == 1


def test_the_first_of_equal_keys_counts() -> None:
    packed = b"\x82\xa1a\x01\xa1a\x02"
    subject = ffi.new("sb_subject *")
    subject.properties, subject.properties_length = ffi.from_buffer(packed), len(packed)
    program = Selector("a = 1").program
    assert lib.sb_selector_matches(program, len(program), subject) == 1
