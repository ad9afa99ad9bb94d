"""Votes alone: an epoch is decided once, for one that has all, and while nobody has a lease."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.simulation.election.fault import KINDS, LOST_AND_MID_VOTE
from shmbroker.netbridge.simulation.election.run import faults_of, simulate
from shmbroker.netbridge.simulation.election.scene import Scene
from shmbroker.netbridge.simulation.shrink import explained
from tests.netbridge.simulation.election_mutants import MUTANTS, SHOWN_BY
from tests.netbridge.simulation.mutants import Mutant

SEEDS = 600
PARTS = 2


@pytest.mark.parametrize("part", range(PARTS))
def test_seeds(part: int) -> None:
    for seed in range(part * SEEDS // PARTS, (part + 1) * SEEDS // PARTS):
        outcome = simulate(seed)
        assert not outcome.wrong, explained(outcome, "election")


def test_a_seed_is_the_same_run_each_time() -> None:
    assert simulate(5, traced=True) == simulate(5, traced=True)


def test_all_kinds_of_faults_happen() -> None:
    kinds = {fault.kind for seed in range(SEEDS) for fault in faults_of(seed)}
    assert kinds == {*KINDS, LOST_AND_MID_VOTE}


def test_what_is_to_be_seen_happens() -> None:
    scenes: list[Scene] = []
    for seed in range(60):
        simulate(seed, scenes=scenes)
    for name in ("granted", "adopted", "votes"):
        assert sum(getattr(each.watch, name) for each in scenes) > 5, name


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_each_guard_is_needed(mutant: Mutant) -> None:
    seed = SHOWN_BY[mutant.name]
    with mutant.applied():
        assert simulate(seed).wrong, "nothing objects"
    if mutant.behind is not None:
        with mutant.behind.applied():
            assert not simulate(seed).wrong, "one of both guards is enough"
    assert not simulate(seed).wrong, "with the guards it is right"
