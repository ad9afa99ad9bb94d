"""Selectors: what they mean, and the class."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from dataclasses import FrozenInstanceError
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import Selector
from shmbroker.core.codes import INVALID, OK
from shmbroker.ipc._native import ffi, lib

ROOT = Path(__file__).parents[3]


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
