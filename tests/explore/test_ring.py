"""The real kernels under every interleaving of small scenarios, and without each guard."""

from __future__ import annotations

import warnings

import pytest

from tests.explore import tally
from tests.explore.hunt import hunt, is_shown
from tests.explore.machine import Machine
from tests.explore.mutants import MUTANTS, Mutant
from tests.explore.report import explained
from tests.explore.retrace import recorded
from tests.explore.scenarios import SHORT, scenario
from tests.explore.search import explore
from tests.explore.translation import Translation

SHORT_STATES_MAX = 50_000
"""Of a scenario; `make explore` sees the others."""
STATES_WANTED = 300_000
SCHEDULES = recorded()
OUTDATED = "no fault on the recorded schedule any more; python -m tests.explore record"


@pytest.mark.parametrize("name", SHORT)
def test_nothing_can_go_wrong(name: str) -> None:
    outcome = explore(scenario(name), states_max=SHORT_STATES_MAX)
    if outcome.failure is not None:
        pytest.fail(explained(Machine(scenario(name), Translation()), outcome.failure))
    assert outcome.complete or outcome.states >= SHORT_STATES_MAX
    tally.OUTCOMES.append(outcome)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_guard_is_needed(mutant: Mutant) -> None:
    schedule = SCHEDULES.get(mutant.name)
    if schedule is None:
        hunt(mutant)
    elif not is_shown(mutant, schedule):
        warnings.warn(f"{OUTDATED} {mutant.name}", stacklevel=1)
        hunt(mutant)
    tally.MUTANTS_CAUGHT.append(mutant.name)


def test_what_is_recorded_are_mutants() -> None:
    assert set(SCHEDULES) <= {mutant.name for mutant in MUTANTS}


def test_enough_was_explored() -> None:
    if len(tally.OUTCOMES) < len(SHORT):
        pytest.skip("only some of the scenarios were run")
    assert sum(outcome.states for outcome in tally.OUTCOMES) >= STATES_WANTED
