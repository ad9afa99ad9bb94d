"""Queues that follow others in a world with faults: a moment of the original, whatever the seed."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.simulation.queue_replicas.fault import KINDS
from shmbroker.netbridge.simulation.queue_replicas.run import faults_of, simulate
from shmbroker.netbridge.simulation.queue_replicas.scene import Scene
from shmbroker.netbridge.simulation.shrink import explained
from tests.netbridge.simulation.mutants import Mutant
from tests.netbridge.simulation.queue_replica_mutants import (
    IN_THAT_ORDER,
    LET_FOR_GOOD,
    LET_FOR_GOOD_SEED,
    MUTANTS,
    SHOWN_BY,
)

SEEDS = 600
PARTS = 6
MUTANT_SEEDS = 10
WATCHED_SEEDS = 60


@pytest.mark.parametrize("part", range(PARTS))
def test_seeds(part: int) -> None:
    for seed in range(part * SEEDS // PARTS, (part + 1) * SEEDS // PARTS):
        outcome = simulate(seed)
        assert not outcome.wrong, explained(outcome, "queue_replicas")


def test_a_seed_is_the_same_run_each_time() -> None:
    assert simulate(5, traced=True) == simulate(5, traced=True)


def test_all_kinds_of_faults_happen() -> None:
    assert {fault.kind for seed in range(SEEDS) for fault in faults_of(seed)} == set(KINDS)


def test_what_is_to_be_seen_happens() -> None:
    scenes: list[Scene] = []
    for seed in range(WATCHED_SEEDS):
        simulate(seed, scenes=scenes)
    for name in ("moments", "resumed", "saved", "confirmed", "unwaited"):
        assert sum(getattr(each.watch, name) for each in scenes) > WATCHED_SEEDS / 4, name
    assert sum(each.watch.kept for each in scenes) > 0, "durable replicas lose power"
    excused = sum(len(each.watch.excused) for each in scenes)
    assert excused < WATCHED_SEEDS / 10, "nearly all is compared"


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_each_guard_is_needed(mutant: Mutant) -> None:
    first = SHOWN_BY.get(mutant.name, 0)
    seeds = range(first, first + MUTANT_SEEDS)
    with mutant.applied():
        failed = next((seed for seed in seeds if simulate(seed).wrong), None)
    assert failed is not None, "no seed objects"
    assert not simulate(failed).wrong, "with the guard it is right"


def test_a_replica_of_a_queue_that_is_back_may_not_be_deleted_any_more() -> None:
    with LET_FOR_GOOD.applied():
        assert simulate(LET_FOR_GOOD_SEED, list(IN_THAT_ORDER)).wrong
    assert not simulate(LET_FOR_GOOD_SEED, list(IN_THAT_ORDER)).wrong
