"""Topics: what a pattern means, against a regular expression."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shmbroker.ipc._native import lib
from tests.core.fenced import Fenced

PATTERN, KEY = Fenced(), Fenced()


def matches(pattern: str, key: str) -> bool:
    left, right = pattern.encode(), key.encode()
    code: int = lib.sb_topic_matches(PATTERN.hold(left), len(left), KEY.hold(right), len(right))
    assert code in (0, 1)
    return code == 1


def oracle(pattern: str, key: str) -> bool:
    """The same by a regular expression over words that each end with a dot."""
    kinds = {"*": r"[^.]*\.", "#": r"(?:[^.]*\.)*"}
    words = pattern.split(".") if pattern else []
    expression = "".join(kinds.get(word, re.escape(word) + r"\.") for word in words)
    return re.fullmatch(expression, f"{key}." if key else "") is not None


@pytest.mark.parametrize(
    ("pattern", "key"),
    [
        ("", ""),
        ("#", ""),
        ("#.#", ""),
        ("#", "a.b.c"),
        ("a.b", "a.b"),
        ("*", "a"),
        ("a.*.c", "a.b.c"),
        ("a.#", "a"),
        ("a.#", "a."),
        ("#.a", "a"),
        ("a.#.b", "a.b"),
        ("a.#.b", "a.b.x.b"),
        ("#.a.#.b", "a.x.a.b"),
        ("*.*", "."),
        ("a.*", "a."),
        ("a*", "a*"),
        ("*.#", "a.b"),
        ("#.*", "a"),
        ("a.#.#", "a"),
    ],
)
def test_a_pattern_takes(pattern: str, key: str) -> None:
    assert matches(pattern, key)
    assert oracle(pattern, key)


@pytest.mark.parametrize(
    ("pattern", "key"),
    [
        ("", "a"),
        ("", "."),
        ("a", ""),
        ("*", ""),
        ("*.#", ""),
        ("*", "."),
        ("*", "a.b"),
        ("a.*", "a"),
        ("a.#.b", "a"),
        ("a.#.b", "a.b.c"),
        ("a.", "a"),
        ("a", "a."),
        ("ab", "a"),
        ("a", "ab"),
        ("a*", "ab"),
        ("#a", "ba"),
        (".", "a"),
        ("#.a.*", "a"),
    ],
)
def test_a_pattern_leaves(pattern: str, key: str) -> None:
    assert not matches(pattern, key)
    assert not oracle(pattern, key)


patterns = st.lists(st.sampled_from(["*", "#", "a", "b", "ab", "", "a*", "#b"]), max_size=7)
keys = st.lists(st.sampled_from(["a", "b", "ab", "", "*", "#"]), max_size=8)


@given(patterns.map(".".join), keys.map(".".join))
def test_any_pattern_and_key(pattern: str, key: str) -> None:
    assert matches(pattern, key) == oracle(pattern, key)


@given(st.text("ab.*#", max_size=12), st.text("ab.*#", max_size=12))
def test_any_characters(pattern: str, key: str) -> None:
    assert matches(pattern, key) == oracle(pattern, key)


def test_many_hashes_take_no_exponential_time() -> None:
    assert not matches("#.a." * 60 + "b", "a." * 2000 + "c")
