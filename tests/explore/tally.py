"""How much has been explored in this run of the tests: said at its end."""

from __future__ import annotations

from typing import Final

from tests.explore.search import Outcome

OUTCOMES: Final[list[Outcome]] = []
MUTANTS_CAUGHT: Final[list[str]] = []


def summary() -> str:
    states = sum(outcome.states for outcome in OUTCOMES)
    seconds = sum(outcome.seconds for outcome in OUTCOMES)
    return (
        f"explored {states:,} states of {len(OUTCOMES)} scenarios in {seconds:.0f} s, "
        f"each to the end; {len(MUTANTS_CAUGHT)} mutants caught"
    )
