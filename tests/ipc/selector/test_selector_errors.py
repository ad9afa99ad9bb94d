"""Selectors that are none, and limits: the error says where and what; noise never crashes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Selector, SelectorError
from shmbroker.core import opcodes as op
from shmbroker.core.codes import INVALID, OK
from shmbroker.ipc._native import lib

ROOT = Path(__file__).parents[3]


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


def checked(*instructions: int, names: int = 0) -> bool:
    program = bytes([op.VERSION, names]) + bytes([0, 0, 0]) * names + bytes(instructions)
    return bool(lib.sb_selector_check(program, len(program)) == OK)


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
