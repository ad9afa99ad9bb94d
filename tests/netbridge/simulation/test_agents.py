"""Agents in a world with faults: each copy once, rings end, and what is wanted is what is bound."""

from __future__ import annotations

from collections import Counter

import pytest

from shmbroker.netbridge.simulation.agents.broker import TO_ALL
from shmbroker.netbridge.simulation.agents.cast import ALL, CASTS, Agent, Cast, cast_of
from shmbroker.netbridge.simulation.agents.copies import copies
from shmbroker.netbridge.simulation.agents.run import faults_of, simulate
from shmbroker.netbridge.simulation.agents.scene import Scene
from shmbroker.netbridge.simulation.peers.fault import KINDS
from shmbroker.netbridge.simulation.shrink import explained
from tests.netbridge.simulation.agent_mutants import MUTANTS, SHOWN_BY
from tests.netbridge.simulation.mutants import Mutant

SEEDS = 80
MUTANT_SEEDS = 10


def test_seeds_and_that_what_is_to_be_seen_happens() -> None:
    scenes: list[Scene] = []
    for seed in range(SEEDS):
        outcome = simulate(seed, scenes=scenes)
        assert not outcome.wrong, explained(outcome, "agents")
    for name in ("arrived", "came_back"):
        assert sum(getattr(each.watch, name) for each in scenes) > SEEDS, name
    assert sum(each.watch.returned for each in scenes) > 0
    assert max(each.watch.hops_most for each in scenes) > 1


def test_a_seed_is_the_same_run_each_time() -> None:
    assert simulate(5, traced=True) == simulate(5, traced=True)


def test_all_kinds_of_faults_and_all_casts_happen() -> None:
    assert {fault.kind for seed in range(SEEDS) for fault in faults_of(seed)} == set(KINDS)
    assert {cast_of(seed).name for seed in range(SEEDS)} == set(CASTS)
    assert sum(bool(cast_of(seed).pairs) for seed in range(SEEDS)) > SEEDS / 3


@pytest.mark.parametrize("name", ["ring", "both ways", "subscribe and forward", "hub", "mutual"])
def test_one_copy_each_is_what_is_counted(name: str) -> None:
    """The checker's own idea of it, for networks with a way back."""
    agents = tuple(Agent(at, mode, to) for at, mode, to in CASTS[name])
    nodes = tuple(sorted({node for each in agents for node in (each.at, each.to)}))
    cast = Cast(name, nodes, agents, frozenset(), frozenset(nodes))
    bound = dict.fromkeys(nodes, frozenset({TO_ALL}))
    for node in nodes:
        found = copies(cast, bound, node, "de", has_links=True)
        assert found == Counter((each, ALL) for each in nodes)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_each_guard_is_needed(mutant: Mutant) -> None:
    first = SHOWN_BY.get(mutant.name, 0)
    seeds = range(first, first + MUTANT_SEEDS)
    with mutant.applied():
        failed = next((seed for seed in seeds if simulate(seed).wrong), None)
    assert failed is not None, "no seed objects"
    assert not simulate(failed).wrong, "with the guard it is right"
