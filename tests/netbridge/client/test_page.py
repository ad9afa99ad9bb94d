"""The sessions of docs/remote.md run as printed, with a broker at the address that they name.

A busy machine has more time than a reader of the page.
"""

from __future__ import annotations

import doctest
from pathlib import Path

from tests.support.serving import Site

PAGE = Path(__file__).parents[3] / "docs" / "remote.md"


def test_the_sessions_of_the_page(served: Site) -> None:
    text = PAGE.read_text().replace("orders.example:61616", f"127.0.0.1:{served.port}")
    text = text.replace("timeout=0.2)", "timeout=2)")
    page = doctest.DocTestParser().get_doctest(text, {}, "remote.md", str(PAGE), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    assert len(page.examples) > 10
    assert runner.run(page).failed == 0
