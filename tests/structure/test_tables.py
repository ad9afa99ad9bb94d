"""Tables of the documentation are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker.ipc.build.tables import TABLES, renewed
from shmbroker.netbridge.config import tables as options

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_as_the_code_has_it(name: str) -> None:
    text = (DOCS / name).read_text()
    assert text == renewed(name, text), "run python -m shmbroker.ipc.build.tables"


@pytest.mark.parametrize("name", options.PAGES)
def test_the_tables_of_options_are_as_the_code_has_them(name: str) -> None:
    text = (DOCS / name).read_text()
    assert text == options.renewed(text), "run python -m shmbroker.netbridge.config.tables"


def test_every_table_of_options_is_in_the_docs() -> None:
    text = "".join((DOCS / name).read_text() for name in options.PAGES)
    assert not [each for each in options.tables() if f"<!-- table {each} -->" not in text]
