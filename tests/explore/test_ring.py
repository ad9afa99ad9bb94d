"""The real kernels under every interleaving of small scenarios, and without each guard."""

from __future__ import annotations

import pytest

from tests.explore import tally
from tests.explore.machine import Machine
from tests.explore.mutants import MUTANTS, Mutant
from tests.explore.report import explained
from tests.explore.scenarios import SHORT, scenario
from tests.explore.search import explore
from tests.explore.translation import Translation
from tests.explore.walk import walk

SHORT_STATES_MAX = 50_000
"""Of a scenario; `make explore` sees the others."""
MUTANT_STATES_MAX = 1_000_000
STATES_WANTED = 300_000
WALKS = 300
"""Before a mutant is searched for: they catch most, and take a second at most."""


@pytest.mark.parametrize("name", SHORT)
def test_nothing_can_go_wrong(name: str) -> None:
    outcome = explore(scenario(name), states_max=SHORT_STATES_MAX)
    if outcome.failure is not None:
        pytest.fail(explained(Machine(scenario(name), Translation()), outcome.failure))
    assert outcome.complete or outcome.states >= SHORT_STATES_MAX
    tally.OUTCOMES.append(outcome)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_guard_is_needed(mutant: Mutant) -> None:
    translation = mutant.translation()
    if walk(scenario(mutant.scenario), translation, WALKS) is None or translation.unused():
        translation = mutant.translation()
        outcome = explore(scenario(mutant.scenario), translation, states_max=MUTANT_STATES_MAX)
        assert not translation.unused(), f"{mutant.name}: {mutant.scenario} never calls these"
        assert outcome.failure is not None, f"{mutant.name} was not caught: {outcome}"
    tally.MUTANTS_CAUGHT.append(mutant.name)


def test_enough_was_explored() -> None:
    if len(tally.OUTCOMES) < len(SHORT):
        pytest.skip("only some of the scenarios were run")
    assert sum(outcome.states for outcome in tally.OUTCOMES) >= STATES_WANTED
