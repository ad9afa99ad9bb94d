"""Tables of the documentation are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker.ipc.build.tables import TABLES, renewed

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_as_the_code_has_it(name: str) -> None:
    text = (DOCS / name).read_text()
    assert text == renewed(name, text), "run python -m shmbroker.ipc.build.tables"
