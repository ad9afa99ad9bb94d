"""What docs/ shows is run as it stands there."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = sorted((Path(__file__).parents[1] / "docs").glob("*.md"))


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.stem)
def test_the_sessions_in_docs(path: Path) -> None:
    failed, tried = doctest.testfile(
        str(path), module_relative=False, optionflags=doctest.IGNORE_EXCEPTION_DETAIL
    )
    assert tried > 5
    assert failed == 0
