"""Network links in a world with faults: each message in one queue, and none is stuck."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.simulation.networks.cast import CASTS, cast_of
from shmbroker.netbridge.simulation.networks.run import faults_of, simulate
from shmbroker.netbridge.simulation.networks.scene import Scene
from shmbroker.netbridge.simulation.peers.fault import KINDS
from shmbroker.netbridge.simulation.shrink import explained
from tests.netbridge.simulation.mutants import Mutant
from tests.netbridge.simulation.network_mutants import MUTANTS, SHOWN_BY

SEEDS = 80
MUTANT_SEEDS = 10


def test_seeds_and_that_messages_are_fetched() -> None:
    scenes: list[Scene] = []
    for seed in range(SEEDS):
        outcome = simulate(seed, scenes=scenes)
        assert not outcome.wrong, explained(outcome, "networks")
    assert sum(each.watch.arrived for each in scenes) > 4 * SEEDS


def test_a_seed_is_the_same_run_each_time() -> None:
    assert simulate(5, traced=True) == simulate(5, traced=True)


def test_all_kinds_of_faults_and_all_casts_happen() -> None:
    assert {fault.kind for seed in range(SEEDS) for fault in faults_of(seed)} == set(KINDS)
    assert {cast_of(seed).name for seed in range(SEEDS)} == set(CASTS)
    assert any(each.is_duplex for seed in range(SEEDS) for each in cast_of(seed).links)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_each_guard_is_needed(mutant: Mutant) -> None:
    first = SHOWN_BY.get(mutant.name, 0)
    seeds = range(first, first + MUTANT_SEEDS)
    with mutant.applied():
        failed = next((seed for seed in seeds if simulate(seed).wrong), None)
    assert failed is not None, "no seed objects"
    assert not simulate(failed).wrong, "with the guard it is right"
