"""Says at the end of a test run how many states were explored."""

from __future__ import annotations

import pytest

from tests.explore import tally


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if tally.OUTCOMES:
        terminalreporter.write_sep("=", tally.summary())
