"""Patterns of names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shmbroker.ipc.base.pattern import matches


@pytest.mark.parametrize(
    ("pattern", "name", "is_matched"),
    [
        ("east", "east", True),
        ("east", "eastern", False),
        ("rack1.*", "rack1.east", True),
        ("rack1.*", "rack1", False),
        ("rack1.*", "rack1.east.two", False),
        ("rack1.#", "rack1", True),
        ("rack1.#", "rack1.east.two", True),
        ("#.two", "rack1.east.two", True),
        ("#.east.#", "rack1.east.two", True),
        ("#.west.#", "rack1.east.two", False),
        ("#", "", True),
        ("*.*", "a.b.c", False),
    ],
)
def test_words_one_word_and_any_number_of_them(pattern: str, name: str, is_matched: bool) -> None:
    assert matches(pattern, name) is is_matched


def _plainly(pattern: list[str], words: list[str]) -> bool:
    if not pattern:
        return not words
    first, *rest = pattern
    if first == "#":
        return any(_plainly(rest, words[at:]) for at in range(len(words) + 1))
    return bool(words) and first in ("*", words[0]) and _plainly(rest, words[1:])


@given(st.lists(st.sampled_from("ab*#"), min_size=1, max_size=6),
       st.lists(st.sampled_from("ab"), min_size=1, max_size=6))  # fmt: skip
def test_it_agrees_with_what_is_written_plainly(pattern: list[str], words: list[str]) -> None:
    assert matches(".".join(pattern), ".".join(words)) is _plainly(pattern, words)
