"""Sessions in a world with faults: every call ends as it says, whatever the seed."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.simulation.sessions.history import SessionHistory
from shmbroker.netbridge.simulation.sessions.run import simulate
from shmbroker.netbridge.simulation.shrink import explained
from tests.netbridge.simulation.mutants import Mutant
from tests.netbridge.simulation.session_mutants import MUTANTS, SHOWN_BY

SEEDS = 1000
PARTS = 10
MUTANT_SEEDS = 1000


@pytest.mark.parametrize("part", range(PARTS))
def test_seeds(part: int) -> None:
    for seed in range(part * SEEDS // PARTS, (part + 1) * SEEDS // PARTS):
        outcome = simulate(seed)
        assert not outcome.wrong, explained(outcome, "sessions")


def test_a_seed_is_the_same_run_each_time() -> None:
    assert simulate(5, traced=True) == simulate(5, traced=True)


def test_what_is_to_be_seen_happens() -> None:
    histories: list[SessionHistory] = []
    for seed in range(60):
        simulate(seed, histories=histories)
    for name in ("retries", "handed", "resumed", "remade", "left"):
        assert sum(getattr(each, name) for each in histories) > 5, name


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_each_guard_is_needed(mutant: Mutant) -> None:
    first = SHOWN_BY[mutant.name]
    seeds = range(first, first + MUTANT_SEEDS)
    with mutant.applied():
        failed = next((seed for seed in seeds if simulate(seed).wrong), None)
    assert failed is not None, "no seed objects"
    assert not simulate(failed).wrong, "with the guard it is right"
