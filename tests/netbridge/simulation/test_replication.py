"""Replicated nodes in a world with faults: what was confirmed lasts, whatever the seed."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.simulation.replication.fault import KINDS
from shmbroker.netbridge.simulation.replication.run import faults_of, simulate
from shmbroker.netbridge.simulation.replication.scene import Scene
from shmbroker.netbridge.simulation.shrink import explained
from tests.netbridge.simulation.mutants import Mutant
from tests.netbridge.simulation.replication_mutants import MUTANTS, SHOWN_BY

SEEDS = 1000
PARTS = 10
MUTANT_SEEDS = 20


@pytest.mark.parametrize("part", range(PARTS))
def test_seeds(part: int) -> None:
    for seed in range(part * SEEDS // PARTS, (part + 1) * SEEDS // PARTS):
        outcome = simulate(seed)
        assert not outcome.wrong, explained(outcome, "replication")


def test_a_seed_is_the_same_run_each_time() -> None:
    assert simulate(5, traced=True) == simulate(5, traced=True)


def test_all_kinds_of_faults_happen() -> None:
    assert {fault.kind for seed in range(SEEDS) for fault in faults_of(seed)} == set(KINDS)


def test_what_is_to_be_seen_happens() -> None:
    scenes: list[Scene] = []
    for seed in range(60):
        simulate(seed, scenes=scenes)
    for name in ("takeovers", "handovers", "votes", "synced"):
        assert sum(getattr(each.watch, name) for each in scenes) > 5, name


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_each_guard_is_needed(mutant: Mutant) -> None:
    first = SHOWN_BY[mutant.name]
    seeds = range(first, first + MUTANT_SEEDS)
    with mutant.applied():
        failed = next((seed for seed in seeds if simulate(seed).wrong), None)
    assert failed is not None, "no seed objects"
    assert not simulate(failed).wrong, "with the guard it is right"
