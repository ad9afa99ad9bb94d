"""Each promise of links and remote programs has a test with its name, or says why not yet."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.netbridge.rows import OPEN, ROWS, SHOWN

TESTS = Path(__file__).parents[1]


@cache
def named_in(path: str) -> frozenset[str]:
    tree = ast.parse((TESTS / path).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(each.name for each in tree.body if isinstance(each, kinds))


def test_every_row_is_shown_or_open_and_none_is_both() -> None:
    assert len(ROWS) == len(set(ROWS))
    assert set(SHOWN) | set(OPEN) == set(ROWS)
    assert not set(SHOWN) & set(OPEN)


@pytest.mark.parametrize("row", SHOWN)
def test_its_tests_are_there(row: str) -> None:
    assert SHOWN[row]
    for each in SHOWN[row]:
        path, _, name = each.partition("::")
        assert name in named_in(path), each
