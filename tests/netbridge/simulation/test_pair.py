"""A pair in a world with faults: never two that accept, but after a silence that deceived."""

from __future__ import annotations

from typing import Final

import pytest

from shmbroker.netbridge.pair.machine import Pair
from shmbroker.netbridge.simulation.pair.run import simulate
from shmbroker.netbridge.simulation.shrink import explained
from tests.netbridge.simulation.mutants import Mutant

SEEDS = 1000
PARTS = 4
MUTANT_SEEDS = 100
SHOWN_BY: Final = {"a-conflict-ends-by-what-was-said-before": 13285}
"""The first seed, where not one of the first does."""

MUTANTS: Final = (
    Mutant(
        "takes-over-without-silence",
        Pair,
        "_asked",
        "self.silence(now) > self.options.failover_timeout and self._may_begin",
        "self._may_begin",
    ),
    Mutant(
        "a-backup-begins-alone",
        Pair,
        "heard",
        "case State.PENDING | State.CONFLICT, State.PENDING if self.options.is_primary:",
        "case State.PENDING | State.CONFLICT, State.PENDING:",
    ),
    Mutant("conflict-not-seen", Pair, "_both_active", "self._stops(told, now)", "pass"),
    Mutant(
        "passive-for-good",
        Pair,
        "heard",
        "case State.PASSIVE, State.PENDING:",
        "case State.PASSIVE, State.LEAVING:",
    ),
    Mutant(
        "a-conflict-ends-by-what-was-said-before",
        Pair,
        "heard",
        "case State.CONFLICT, State.ACTIVE if self._against != told.activation:",
        "case State.CONFLICT, State.ACTIVE:",
    ),
    Mutant("says-nothing-in-between", Pair, "tick", "now >= self.deadline", "False"),
)


@pytest.mark.parametrize("part", range(PARTS))
def test_seeds(part: int) -> None:
    for seed in range(part * SEEDS // PARTS, (part + 1) * SEEDS // PARTS):
        outcome = simulate(seed)
        assert not outcome.wrong, explained(outcome, "pair")


def test_a_seed_is_the_same_run_each_time() -> None:
    assert simulate(5, traced=True) == simulate(5, traced=True)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_each_guard_is_needed(mutant: Mutant) -> None:
    first = SHOWN_BY.get(mutant.name, 0)
    seeds = range(first, first + MUTANT_SEEDS)
    with mutant.applied():
        failed = next((seed for seed in seeds if simulate(seed).wrong), None)
    assert failed is not None, "no seed objects"
    assert not simulate(failed).wrong, "with the guard it is right"
