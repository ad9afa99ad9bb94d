"""The sessions in docs/ are run as they stand there."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = sorted((Path(__file__).parents[1] / "docs").glob("*.md"))
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.stem)
def test_the_session(path: Path) -> None:
    failed, _tried = doctest.testfile(str(path), module_relative=False, optionflags=OPTIONS)
    assert failed == 0
