"""What is published to an exchange while a node leaves is in each of its queues once: in whatever
order members hear of it, and whoever is started anew or killed meanwhile."""

from __future__ import annotations

from typing import Final

import pytest

from shmbroker.netbridge.cluster import succession
from shmbroker.netbridge.cluster.advert import Binding
from shmbroker.netbridge.cluster.said import Left
from shmbroker.netbridge.cluster.topics import Topics
from shmbroker.netbridge.clustered import messages
from tests.netbridge.cluster.leaving import World
from tests.netbridge.cluster.talk import Town, node_of
from tests.netbridge.simulation.mutants import Mutant

SEEDS = 200
MUTANT_SEEDS = 10

MUTANTS: Final = (
    Mutant("what-crosses-for-others-reaches-it", Topics, "_of", "is_leaving or", ""),
    Mutant("one-that-was-not-heard-of-does-not-leave", Topics, "_of", "self._by_name or", ""),
    Mutant(
        "programs-at-the-heir-publish-to-the-former",
        Topics,
        "_of",
        "self._heirs.get(node) == HERE and name in self._here",
        "False",
    ),
    Mutant(
        "bound-at-both",
        Topics,
        "carried",
        "copy.bindings - self._told_by_heir(node)",
        "copy.bindings",
    ),
    Mutant(
        "before-its-heir-is-heard-its-bindings-end",
        messages,
        "settled",
        "machine.heir(node) in heard and",
        "",
    ),
    Mutant(
        "before-its-heir-is-met-its-bindings-end",
        messages,
        "settled",
        "and not machine.waits_for_heir(node)",
        "",
    ),
    Mutant(
        "one-that-was-not-heard-has-no-bindings",
        succession.Succession,
        "looks",
        "self.waits = any(now < each + KEPT_SECONDS for each in self._unheard.values())",
        "self.waits = False",
    ),
)
SHOWN_BY: Final = {
    "one-that-was-not-heard-of-does-not-leave": 1435,
    "programs-at-the-heir-publish-to-the-former": 17,
    "before-its-heir-is-heard-its-bindings-end": 12,
    "before-its-heir-is-met-its-bindings-end": 12,
    "one-that-was-not-heard-has-no-bindings": 63,
}
"""The first seed that objects, where not one of the first does."""


def objections(seed: int, *, binds_early: bool = False) -> list[str]:
    world = World(seed)
    world.run(binds_early=binds_early)
    return world.wrong()


def test_seeds() -> None:
    for seed in range(SEEDS):
        assert not objections(seed), f"seed {seed}"


def test_bound_when_it_is_made_it_has_messages_twice() -> None:
    assert any(objections(seed, binds_early=True) for seed in range(MUTANT_SEEDS))


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_each_guard_is_needed(mutant: Mutant) -> None:
    first = SHOWN_BY.get(mutant.name, 0)
    with mutant.applied():
        seeds = range(first, first + MUTANT_SEEDS)
        failed = next((seed for seed in seeds if objections(seed)), None)
    assert failed is not None, "no seed objects"
    assert not objections(failed), "with the guard it is right"


@pytest.mark.parametrize("is_silent", [False, True])
def test_its_bindings_count_until_its_heir_has_told_the_same(is_silent: bool) -> None:
    town = Town()
    for name in "abc":
        town.add(name)
    town.link("a", "b")
    town.link("b", "c")
    town.link("a", "c")
    old = Binding("news", "fanout", "old", False, "", b"\x80", False, False)
    town.shows("b", old)
    town.shows("c")
    found, machine = succession.Succession(), town.members["a"]

    def leavers(now: float) -> dict[bytes, bytes]:
        copies = {each: machine.adverts.of(each) for each in machine.lives}
        return {node: each.heir for node, each in found.looks(machine, copies, [], now).items()}

    assert not leavers(0.0)
    assert found.is_new
    assert found.deadline == succession.KEPT_SECONDS
    later = 2 * succession.KEPT_SECONDS
    town.does("b", town.members["b"].departs(node_of("c")))
    assert leavers(later) == {node_of("b"): node_of("c")}
    assert not found.is_new
    town.does("c", town.members["c"].leaves(Left(node_of("b"), 1, node_of("c"))))
    town.dies("b")
    assert node_of("b") not in machine.lives
    assert leavers(later + 1.0) == {node_of("b"): node_of("c")}
    assert found.deadline == later + 1.0 + succession.KEPT_SECONDS
    if is_silent:
        assert not leavers(found.deadline)
    else:
        town.shows("c", old)
        assert not leavers(later + 2.0)
