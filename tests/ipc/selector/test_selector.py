"""Selectors: what they mean, against a plain evaluator in Python; errors; noise."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from dataclasses import FrozenInstanceError
from itertools import product
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shmbroker
from shmbroker import Selector, SelectorError
from shmbroker.core.codes import INVALID, OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.selector import opcodes as op
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

# --- what they mean -------------------------------------------------------------------------------

SELECTED = [
    # the examples of the specification
    (
        "JMSType = 'car' AND color = 'blue' AND weight > 2500",
        {"JMSType": "car", "color": "blue", "weight": 2501},
    ),
    ("age BETWEEN 15 AND 19", {"age": 15}),
    ("age BETWEEN 15 AND 19", {"age": 19.0}),
    ("age NOT BETWEEN 15 AND 19", {"age": 20}),
    ("Country IN ('UK', 'US', 'France')", {"Country": "UK"}),
    ("Country NOT IN ('UK', 'US', 'France')", {"Country": "Peru"}),
    ("phone LIKE '12%3'", {"phone": "123"}),
    ("phone LIKE '12%3'", {"phone": "12993"}),
    ("word LIKE 'l_se'", {"word": "lose"}),
    (r"underscored LIKE '\_%' ESCAPE '\'", {"underscored": "_foo"}),
    ("phone NOT LIKE '12%3'", {"phone": "1234"}),
    ("prop_name IS NULL", {}),
    ("prop_name IS NOT NULL", {"prop_name": 0}),
    # literals
    ("a = 'it''s'", {"a": "it's"}),
    ("a = ''", {"a": ""}),
    ("a = 57 AND -957 < a AND a < +62", {"a": 57}),
    ("a = 9223372036854775807L", {"a": (1 << 63) - 1}),
    ("a = -9223372036854775808", {"a": -(1 << 63)}),
    ("a <> 9223372036854775806", {"a": (1 << 63) - 1}),
    ("a = 18446744073709551615", {"a": (1 << 64) - 1}),
    ("a = 7E3 AND a = 7e+3 AND a > -57.9E-2 AND a = 7000. AND .5 < a", {"a": 7000}),
    ("a = TRUE AND b = false AND a AND NOT b", {"a": True, "b": False}),
    ("TRUE", {}),
    ("nOt FALSE aNd tRuE", {}),
    # identifiers
    (
        "ANDROID = 1 AND In$x = 2 AND _nul = 3 AND Größe = 4",
        {"ANDROID": 1, "In$x": 2, "_nul": 3, "Größe": 4},
    ),
    ('"odd ""name""" = 1 AND "and" = 2 AND "$key" = 3', {'odd "name"': 1, "and": 2, "$key": 3}),
    ("a = 1 AND A = 2", {"a": 1, "A": 2}),
    # precedence
    ("1 + 2 * 3 = 7 AND (1 + 2) * 3 = 9 AND 10 - 2 - 3 = 5 AND 12 / 2 / 3 = 2", {}),
    ("-2 * -3 = 6 AND 5 - -2 = 7 AND 5--2 = 7 AND - (2) = -2", {}),
    ("TRUE OR FALSE AND FALSE", {}),
    ("NOT FALSE OR TRUE AND FALSE", {}),
    ("NOT a = 1 AND b BETWEEN 1 + 1 AND 2 * 2 AND b = 3", {"a": 2, "b": 3}),
    ("(a = 1) = TRUE", {"a": 1}),
    ("a\n=\t1\r\n", {"a": 1}),
    # numbers: exact where both are integers, promoted where not
    ("a / 2 = 3 AND -7 / 2 = -3 AND 7.0 / 2 = 3.5", {"a": 7}),
    ("a + 1 = 9223372036854775808.0 AND a * a > 8e37", {"a": (1 << 63) - 1}),
    ("a = 1.0 AND b = 1", {"a": 1, "b": 1.0}),
    ("a <> a", {"a": math.nan}),
    ("1.0 / a > 1e308", {"a": 0}),
    ("n IN (1, -2, 2.5)", {"n": -2}),
    ("n IN (1, -2, 2.5)", {"n": 2.5}),
    # texts
    ("a LIKE '%é_ç%'", {"a": "xéöç"}),
    ("a LIKE '_' AND b LIKE '___'", {"a": "😀", "b": "a€😀"}),
    ("a LIKE '%%' AND a LIKE ''", {"a": ""}),
    ("a LIKE 'a%b%c'", {"a": "abcabxc"}),
    ("a LIKE '100!%%' ESCAPE '!'", {"a": "100% sure"}),
    ("a LIKE '!!' ESCAPE '!'", {"a": "!"}),
    # there, but nothing to compare
    ("a IS NOT NULL AND b IS NULL", {"a": [1], "b": None}),
    ("a IS NOT NULL", {"a": b"bytes"}),
]

NOT_SELECTED = [
    ("age BETWEEN 15 AND 19", {"age": 20}),
    ("Country IN ('UK', 'US', 'France')", {"Country": "Peru"}),
    ("phone LIKE '12%3'", {"phone": "1234"}),
    ("word LIKE 'l_se'", {"word": "loose"}),
    (r"underscored LIKE '\_%' ESCAPE '\'", {"underscored": "bar"}),
    # unknown is not true, and neither is its contrary
    *(
        (f"{no}({condition})", properties)
        for no, condition, properties in product(
            ["", "NOT "],
            [
                "a = 1",
                "a <> 1",
                "a > 1",
                "a IN (1)",
                "a NOT IN (1)",
                "a BETWEEN 0 AND 2",
                "a + 1 = 2",
            ],
            [{}, {"a": None}, {"a": "1"}, {"a": True}, {"a": b"1"}, {"a": [1]}],
        )
    ),
    ("a NOT LIKE 'x'", {"a": 5}),
    ("a NOT IN ('x')", {}),
    ("a = b", {}),
    ("a = b", {"a": [1], "b": [1]}),
    ("a < b", {"a": "1", "b": "2"}),
    ("1 / a = 0 OR 1 / a <> 0", {"a": 0}),
    ("+ a = b", {"a": "x", "b": "x"}),
    ("a", {"a": 1}),
    ("a = a", {"a": math.nan}),
    ("a = 9223372036854775806", {"a": (1 << 63) - 1}),
]


@pytest.mark.parametrize(("text", "properties"), SELECTED)
def test_selected(text: str, properties: dict[str, Any]) -> None:
    assert Selector(text).matches(properties)


@pytest.mark.parametrize(("text", "properties"), NOT_SELECTED)
def test_not_selected(text: str, properties: dict[str, Any]) -> None:
    assert not Selector(text).matches(properties)


T, F, U = "TRUE", "FALSE", "missing"
AND = {(T, T): T, (T, F): F, (T, U): U, (F, F): F, (F, U): F, (U, U): U}
OR = {(T, T): T, (T, F): T, (T, U): T, (F, F): F, (F, U): U, (U, U): U}
NOT = {T: F, F: T, U: U}


def truth_of(text: str) -> str:
    """Which of the three it is, from what it and its contrary select."""
    is_true, is_false = Selector(text).matches({}), Selector(f"NOT ({text})").matches({})
    assert not (is_true and is_false)
    return T if is_true else F if is_false else U


@pytest.mark.parametrize(("operator", "table"), [("AND", AND), ("OR", OR)])
def test_the_tables_of_three_truths(operator: str, table: dict[tuple[str, str], str]) -> None:
    for (left, right), result in table.items():
        assert truth_of(f"{left} {operator} {right}") == result
        assert truth_of(f"{right} {operator} {left}") == result
    for value, contrary in NOT.items():
        assert truth_of(f"NOT {value}") == contrary


def test_headers() -> None:
    headers: dict[str, Any] = {"key": "eu.de", "size": 7, "priority": 9, "deliveries": 2}
    headers |= {"published_at": 5_999_999, "expires_at": 8_000_000}
    for text in [
        "JMSPriority = 9 AND $priority = 9",
        "JMSDeliveryCount = 3 AND $deliveries = 2",
        "JMSTimestamp = 5 AND JMSExpiration = 8",
        "$key LIKE 'eu.%' AND $size = 7",
    ]:
        assert Selector(text).matches({"JMSPriority": 1, "JMSTimestamp": 1}, **headers)
    assert Selector("JMSPriority = 4 AND JMSDeliveryCount = 1 AND $size = 0").matches()
    assert Selector("$key IS NULL AND JMSTimestamp IS NULL AND JMSExpiration IS NULL").matches()


def test_a_header_that_the_message_lacks_is_the_property_of_that_name() -> None:
    named = {"JMSTimestamp": 5, "JMSMessageID": "ID:1", "JMSXGroupID": "g", "$key": "k"}
    text = "JMSTimestamp = 5 AND JMSMessageID = 'ID:1' AND JMSXGroupID = 'g' AND $key IS NULL"
    assert Selector(text).matches(named)
    assert Selector("JMSCorrelationID IS NULL AND JMSType IS NULL").matches(named)


def test_what_a_message_of_a_queue_shows(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        orders = broker.declare_queue("orders")
        before_ms = time.time_ns() // 1_000_000
        orders.publish(b"seven77", key="eu.de", properties={"colour": "red", "n": 4})
        orders.publish(b"")
        text = f"colour = 'red' AND n = 4 AND $key = 'eu.de' AND $size = 7 AND JMSPriority = 4 \
            AND JMSTimestamp >= {before_ms - 10} AND JMSTimestamp < {before_ms + 60_000} \
            AND JMSExpiration IS NULL AND JMSDeliveryCount = "
        with pytest.raises(ZeroDivisionError), orders.get() as message:
            assert matches_message(text + "1", message)
            assert not matches_message(text + "2", message)
            raise ZeroDivisionError
        with orders.get() as message:
            assert matches_message(text + "2", message)
        with orders.get() as message:
            nothing = "$key IS NULL AND colour IS NULL AND $size = 0 AND $priority = 4"
            assert matches_message(nothing, message)


def matches_message(text: str, message: Any) -> bool:
    program, subject = Selector(text).program, ffi.new("sb_subject *")
    assert lib.sb_subject_of(message._message, subject) == OK
    return bool(lib.sb_selector_matches(program, len(program), subject))


def test_a_structure_that_holds_no_message() -> None:
    assert lib.sb_subject_of(ffi.new("sb_message *"), ffi.new("sb_subject *")) == INVALID


def test_the_priority_and_expiry_that_a_chunk_holds() -> None:
    chunk = ffi.new("int64_t[8]")
    chunk[4] = lib.sb_system_clock() + 7_000_000_000  # monotonic; people count from the epoch
    mark = (0x5B17 << 48) | (1 << 32) | (8 << 24)
    message = ffi.new("sb_message *", {"chunk": chunk, "mark": mark})
    subject = ffi.new("sb_subject *")
    before = time.time_ns()
    assert lib.sb_subject_of(message, subject) == OK
    assert (subject.priority, subject.deliveries) == (7, 0)
    assert before + 6_000_000_000 < subject.expiry_ns < time.time_ns() + 8_000_000_000
    assert subject.properties == ffi.cast("char *", chunk) + 64


# --- against the reference ------------------------------------------------------------------------

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


@settings(max_examples=1500, deadline=None)
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


@settings(max_examples=500, deadline=None)
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


def test_how_many_likes_there_may_be() -> None:
    many = " OR ".join(["a LIKE 'x%'"] * op.LIKES_MAX)
    assert Selector(many).matches({"a": "xy"})
    with pytest.raises(SelectorError, match="expected at most 64 LIKEs"):
        Selector(f"{many} OR a LIKE 'x%'")
    like = (op.NAME, 0, op.LIKE, 0, 0)
    most = [*like, *([*like, op.OR] * (op.LIKES_MAX - 1))]
    assert checked(*most, names=1)
    assert not checked(*most, *like, op.OR, names=1)


def test_how_long_a_part_with_an_underscore_may_be() -> None:
    most = "a" * (op.PART_BYTES_MAX - 1) + "_"
    assert Selector(f"a LIKE '%{most}%'").matches({"a": "b" + "a" * op.PART_BYTES_MAX + "c"})
    assert Selector(f"a LIKE '{most}a%{most}a'").matches({"a": "a" * 2 * (op.PART_BYTES_MAX + 1)})
    with pytest.raises(SelectorError, match="expected at most 64 bytes between two %"):
        Selector(f"a LIKE 'x%{most}a%'")
    program = Selector(f"a LIKE '%{most}%'").program
    at = program.index(bytes([op.LIKE]) + (op.PART_BYTES_MAX + 2).to_bytes(2, "little"))
    longer = program[: at + 1] + (op.PART_BYTES_MAX + 3).to_bytes(2, "little")
    longer += program[at + 3 : -1] + b"a" + program[-1:]
    assert lib.sb_selector_check(program, len(program)) == OK
    assert lib.sb_selector_check(longer, len(longer)) == INVALID


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


# --- texts that are none --------------------------------------------------------------------------

WRONG = [
    ("", 1, "expected a name or a value or NOT, found the end"),
    ("   ", 4, "found the end"),
    ("'a' > 1", 1, "expected a number, found a text: only numbers have an order"),
    ("a > 'b'", 5, "expected a number, found a text: only numbers have an order"),
    ("a > TRUE", 5, "expected a number, found a truth value"),
    ("'a' = 1", 7, "expected a text, found a number"),
    ("$size = 'x'", 9, "expected a number, found a text"),
    ("$key > 1", 1, "expected a number, found a text"),
    ("JMSType = 5", 11, "expected a text, found a number"),
    ("NOT 5", 5, "expected a truth value, found a number"),
    ("a + 'x' = 1", 5, "expected a number, found a text"),
    ("- 'x' = 1", 3, "expected a number, found a text"),
    ("'x' AND a", 1, "expected a truth value, found a text"),
    ("a OR b OR 5", 11, "expected a truth value, found a number"),
    ("5", 1, "expected a truth value, found a number"),
    ("a + 1", 1, "expected a truth value, found a number"),
    ("a BETWEEN 'x' AND 3", 11, "expected a number, found a text"),
    ("a IN ('x', 1)", 12, "expected a text, found a number: all in one list are alike"),
    ("$size IN ('x')", 1, "expected a text, found a number: the list has others"),
    ("a IN ()", 7, "expected a text or a number, found )"),
    ("a IN (b)", 7, "expected a text or a number, found b"),
    ("a IN ('x'", 10, "expected ')' or ',', found the end"),
    ("5 IN (5)", 1, "expected a name, which IN asks about"),
    ("'x' LIKE 'x'", 1, "expected a name, which LIKE asks about"),
    ("a + 1 IS NULL", 1, "expected a name, which IS NULL asks about"),
    ("a LIKE 5", 8, "expected a text, found 5"),
    ("$size LIKE '5'", 1, "only texts are like a pattern"),
    ("a LIKE 'x!' ESCAPE '!'", 8, "expected a character behind the last escape character"),
    ("a LIKE 'x' ESCAPE '!!'", 19, "expected one character"),
    ("a LIKE 'x' ESCAPE ''", 19, "expected one character"),
    ("a IN 'x'", 6, "expected '(', found 'x'"),
    ("a IS 5", 6, "expected NOT or NULL, found 5"),
    ("a 'x\ny'", 3, "found 'x y'"),
    ("a = 1 b", 7, "or AND or OR or the end, found b"),
    ("a = b = c", 7, "expected AND or OR or the end, found ="),
    ("a = 5abc", 6, "found abc"),
    ("(a = 1", 7, "expected ')', found the end"),
    ("a = 1)", 6, "found )"),
    ("AND a", 1, "expected a name or a value or NOT, found AND"),
    ("a = 'x", 5, "what is quoted from here on has no end: expected another '"),
    ('"a = 1', 1, 'what is quoted from here on has no end: expected another "'),
    ('"" = 1', 1, "expected a name between the quotes"),
    ("a # 1", 3, "expected a name, a value or an operator, found '#'"),
    ("a = 1 != 2", 7, "found '!'"),
    ("a = 1e999", 5, "expected a number that is less than 1.8e308"),
    ("a = " + "9" * 5000, 5, "expected a number that is less than 1.8e308"),
    ("$colour = 1", 1, 'a property of this name is written "$colour"'),
    (" OR ".join(f"a{n} = 1" for n in range(65)), 65 * 11 - 20, "at most 64 different names"),
]


@pytest.mark.parametrize(("text", "position", "what"), WRONG)
def test_an_error_says_where_and_what(text: str, position: int, what: str) -> None:
    with pytest.raises(SelectorError) as told:
        Selector(text)
    first, shown, caret = str(told.value).split("\n")
    assert first.startswith(f"selector, character {position}: ")
    assert what in first
    if position <= len(text):
        assert shown[len(caret) - 1] == text[position - 1]
    assert len(shown) < 150


def test_an_error_in_a_later_line_shows_that_line() -> None:
    with pytest.raises(SelectorError) as told:
        Selector("a = 1\nAND\tb = = 2\nOR c = 3")
    assert str(told.value).split("\n")[1:] == ["    AND b = = 2", "            ^"]


def test_a_lone_surrogate_is_no_character() -> None:
    with pytest.raises(SelectorError, match="character 6: this is no Unicode character"):
        Selector("a = '\ud800'")


def test_other_things_than_texts() -> None:
    for thing in (None, 5, b"a = 1", ["a"]):
        with pytest.raises(SelectorError, match="is a text, not"):
            Selector(thing)  # type: ignore[arg-type]


def test_it_is_an_invalid_argument() -> None:
    assert issubclass(SelectorError, shmbroker.InvalidArgument)
    assert issubclass(SelectorError, ValueError)


# --- limits ---------------------------------------------------------------------------------------


def test_the_longest_text() -> None:
    Selector("a = '" + "x" * ((16 << 10) - 6) + "'")
    with pytest.raises(SelectorError, match="has 16385 bytes, and may have 16384"):
        Selector("a = '" + "x" * ((16 << 10) - 5) + "'")
    Selector(" OR ".join(["a=1"] * 2340))
    with pytest.raises(SelectorError, match="more than 65536 bytes compiled"):
        Selector("a=" + "+".join("1" * 8190))
    with pytest.raises(SelectorError, match="more than 65536 bytes compiled"):
        Selector("a IN (" + ",".join("1" * 8000) + ")")


def test_the_deepest_nesting() -> None:
    assert Selector("(" * 100 + "a" + ")" * 100).matches({"a": True})
    assert Selector("NOT " * 100 + "a").matches({"a": True})
    deep = "a = 1 OR (b = 1 AND TRUE = (" * 50 + "a" + "))" * 50
    assert Selector(deep).matches({"a": True, "b": 1})
    deep = "b = 2 OR b = 1 AND TRUE = (" * 100 + "b BETWEEN 1 AND 1 + 1 * 1" + ")" * 100
    assert Selector(deep).matches({"b": 1})
    assert Selector("1 + 1 * (" * 99 + "a" + ")" * 99 + " = 100").matches({"a": 1})
    for text in (
        "(" * 101 + "a" + ")" * 101,
        "NOT " * 101 + "a",
        "- " * 101 + "a = 1",
        "(" * 5000 + "a" + ")" * 5000,
        "NOT " * 4000 + "a",
    ):
        with pytest.raises(SelectorError, match="at most 100 levels of nesting"):
            Selector(text)
    with pytest.raises(SelectorError, match="found the end"):
        Selector("(" * 16_000)


def test_as_many_names_as_there_may_be() -> None:
    text = " AND ".join(f"a{n} = {n}" for n in range(64))
    assert Selector(text).matches({f"a{n}": n for n in reversed(range(64))})


# --- the class ------------------------------------------------------------------------------------


def test_equal_texts_are_compiled_once() -> None:
    one, other = Selector("a = 1"), Selector("a = 1")
    assert one.program is other.program
    assert one == other
    assert hash(one) == hash(other)
    assert repr(one) == "Selector(text='a = 1')"
    with pytest.raises(FrozenInstanceError):
        one.text = "b"  # type: ignore[misc]


def test_the_parser_is_loaded_with_the_first_selector() -> None:
    program = "import sys, shmbroker; shmbroker.Selector; assert 'lark' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


# --- noise ----------------------------------------------------------------------------------------


def checked(*instructions: int, names: int = 0) -> bool:
    program = bytes([op.VERSION, names]) + bytes([0, 0, 0]) * names + bytes(instructions)
    return bool(lib.sb_selector_check(program, len(program)) == OK)


def test_programs_that_are_none() -> None:
    skip = op.SKIP_IF_TRUE
    assert checked(op.TRUE)
    assert checked(op.TRUE, skip, 2, 0, op.TRUE, op.OR)
    assert checked(op.NAME, 0, names=1)
    assert not checked()  # leaves nothing
    assert not checked(op.TRUE, op.TRUE)  # leaves two
    assert not checked(op.NOT)  # takes from nowhere
    assert not checked(op.TRUE, op.AND)
    assert not checked(0)
    assert not checked(op.OPCODES)
    assert not checked(op.INTEGER, 1, 2, 3)
    assert not checked(op.TEXT, 2, 0, 65)
    assert not checked(op.TEXT)
    assert not checked(op.TRUE, op.IN, 1, 0, op.TRUE)  # no constant
    assert not checked(op.NAME, 1, names=1)
    assert not checked(op.NAME, 0)
    assert not checked(op.TRUE, skip, 3, 0, op.TRUE, op.OR)  # beyond the end
    assert not checked(op.TRUE, skip, 1, 0, op.TRUE, op.OR)  # to where the stack is deeper
    assert not checked(op.TRUE, skip, 1, 0, op.NAME, 0, op.OR, names=1)  # into an operand
    assert not checked(op.TRUE, skip, 5, 0, op.TRUE, skip, 3, 0, op.OR)  # they overlap
    assert not checked(*[op.TRUE] * (op.STACK_MAX + 1), *[op.AND] * op.STACK_MAX)
    assert checked(*[op.TRUE] * op.STACK_MAX, *[op.AND] * (op.STACK_MAX - 1))
    assert lib.sb_selector_check(bytes([op.VERSION + 1, 0, op.TRUE]), 3) == INVALID
    assert lib.sb_selector_check(bytes([op.VERSION, 65]) + bytes(400), 402) == INVALID
    assert lib.sb_selector_check(bytes([op.VERSION, 1, op.SOURCES, 0, 0, op.TRUE]), 6) == INVALID
    for length in (-1, 0, 1, 1 << 40):
        assert lib.sb_selector_check(bytes(2), length) == INVALID


@pytest.mark.parametrize("call", ["run_noise(1)", "run_noise(2)", "run_changing(3)"])
def test_noise_never_crashes(call: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"from tests.support.selector_noise import *; {call}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stderr[-3000:]}"
