"""Links in a world with faults: nothing is lost, doubled or invented, whatever the seed."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.simulation.fault import KINDS
from shmbroker.netbridge.simulation.run import faults_of, simulate
from shmbroker.netbridge.simulation.shrink import explained, shrunk
from tests.netbridge.simulation.mutants import MUTANTS, SHOWN_BY, Mutant

SEEDS = 1000
PARTS = 10
MUTANT_SEEDS = 600
HAVE_FAILED = (7174, 7194)
"""Seeds beyond those, at which something was wrong once."""


@pytest.mark.parametrize("part", range(PARTS))
def test_seeds(part: int) -> None:
    for seed in range(part * SEEDS // PARTS, (part + 1) * SEEDS // PARTS):
        outcome = simulate(seed)
        assert not outcome.wrong, explained(outcome)


@pytest.mark.parametrize("seed", HAVE_FAILED)
def test_what_has_failed_once(seed: int) -> None:
    outcome = simulate(seed)
    assert not outcome.wrong, explained(outcome)


def test_a_seed_is_the_same_run_each_time() -> None:
    assert simulate(5, traced=True) == simulate(5, traced=True)
    assert simulate(5, traced=True) != simulate(6, traced=True)


def test_all_kinds_of_faults_happen() -> None:
    seen = {fault.kind for seed in range(SEEDS) for fault in faults_of(seed)}
    assert seen == set(KINDS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_each_guard_is_needed(mutant: Mutant) -> None:
    first = SHOWN_BY[mutant.name]
    seeds = range(first, first + MUTANT_SEEDS)
    with mutant.applied():
        failed = next((seed for seed in seeds if simulate(seed).wrong), None)
    assert failed is not None, "no seed objects"
    assert not simulate(failed).wrong, "with the guard it is right"


def test_a_failure_is_shrunk_and_says_how_to_replay_it() -> None:
    mutant = next(each for each in MUTANTS if each.name == "resumed-where-it-sent-last")
    with mutant.applied():
        failed = next(each for each in map(simulate, range(MUTANT_SEEDS)) if each.wrong)
        fewest = shrunk(failed)
        told = explained(failed)
        assert fewest.wrong
        assert len(fewest.faults) <= len(failed.faults)
        assert simulate(fewest.seed, list(fewest.faults)).wrong == fewest.wrong
    assert f"replay: python -m shmbroker.netbridge.simulation replay {failed.seed}" in told
