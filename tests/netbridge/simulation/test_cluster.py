"""A cluster in a world with faults: each message is consumed once or there once, counted over all
nodes, and nothing is stuck."""

from __future__ import annotations

from collections import Counter

import pytest

from shmbroker.netbridge.simulation.cluster.cast import SIZES, cast_of
from shmbroker.netbridge.simulation.cluster.fault import KINDS
from shmbroker.netbridge.simulation.cluster.run import faults_of, simulate
from shmbroker.netbridge.simulation.cluster.scene import Scene
from shmbroker.netbridge.simulation.shrink import explained
from tests.netbridge.simulation.cluster_mutants import GIVEN, MUTANTS, SHOWN_BY
from tests.netbridge.simulation.mutants import Mutant

SEEDS = 600
PARTS = 8
MUTANT_SEEDS = 10
WATCHED_SEEDS = 60


@pytest.mark.parametrize("part", range(PARTS))
def test_seeds(part: int) -> None:
    for seed in range(part * SEEDS // PARTS, (part + 1) * SEEDS // PARTS):
        outcome = simulate(seed)
        assert not outcome.wrong, explained(outcome, "cluster")


def test_a_seed_is_the_same_run_each_time() -> None:
    assert simulate(5, traced=True) == simulate(5, traced=True)


def test_all_kinds_of_faults_and_all_sizes_happen() -> None:
    assert {fault.kind for seed in range(SEEDS) for fault in faults_of(seed)} == set(KINDS)
    sizes = Counter(len(cast_of(seed).nodes) for seed in range(SEEDS))
    assert sizes.keys() == SIZES.keys()


def test_what_is_to_be_seen_happens() -> None:
    scenes: list[Scene] = []
    for seed in range(WATCHED_SEEDS):
        simulate(seed, scenes=scenes)
    for name in ("balanced", "redistributed", "arrived"):
        assert sum(getattr(each.watch, name) for each in scenes) > WATCHED_SEEDS, name
    for name in ("scaled_down", "forgotten", "handed_over"):
        assert sum(getattr(each.watch, name) for each in scenes) > 0, name


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_each_guard_is_needed(mutant: Mutant) -> None:
    first, faults = SHOWN_BY.get(mutant.name, 0), GIVEN.get(mutant.name)
    seeds = range(first, first + MUTANT_SEEDS)
    with mutant.applied():
        failed = next((seed for seed in seeds if simulate(seed, faults).wrong), None)
    assert failed is not None, "no seed objects"
    assert not simulate(failed, faults).wrong, "with the guard it is right"
