"""Nodes that were scaled down: all hear of it, and who has what they have had."""

from __future__ import annotations

from shmbroker.netbridge.cluster.said import Here, Left, Say
from tests.netbridge.cluster.talk import Town, node_of


def three() -> Town:
    town = Town()
    for name in "abc":
        town.add(name)
    town.link("a", "b")
    town.link("b", "c")
    return town


def leaves(town: Town, at: str, name: str, to: str, epoch: int = 1) -> None:
    left = Left(node_of(name), epoch, node_of(to))
    town.does(at, town.members[at].leaves(left))


def test_it_counts_no_more_once_it_is_gone() -> None:
    town = three()
    leaves(town, "b", "c", "b")
    assert town.knows("b") == {"a", "c"}, "it is there still"
    town.dies("c")
    assert not town.states("b", "missing")
    assert len(town.states("b", "left")) == 1
    for name in "ab":
        assert town.count(name) == (2, 1)
        assert "c" not in town.knows(name)
        assert town.members[name].heir(node_of("c")) == node_of("b")


def test_it_is_told_to_whoever_comes_before_who_is_there() -> None:
    town = three()
    leaves(town, "b", "c", "b")
    town.dies("c")
    begins = [each.what for each in town.members["a"].up(99, town.now) if isinstance(each, Say)]
    assert isinstance(begins[0], Left)
    assert isinstance(begins[-1], Here)
    town.add("d")
    town.link("d", "a")
    assert town.members["d"].heir(node_of("c")) == node_of("b")


def test_one_that_is_back_counts_again_and_may_leave_again() -> None:
    town = three()
    leaves(town, "b", "c", "b")
    town.dies("c")
    town.add("c", epoch=2)
    town.link("b", "c")
    for name in "ab":
        assert "c" in town.knows(name)
        assert town.count(name) == (3, 2)
        assert town.members[name].heir(node_of("c")) == node_of("c")
    leaves(town, "a", "c", "a", epoch=1)  # of before: known already
    assert town.members["b"].left[node_of("c")].to == node_of("b")
    leaves(town, "a", "c", "a", epoch=2)
    assert town.members["b"].left[node_of("c")].to == node_of("a")
    town.dies("c")
    assert town.knows("b") == {"a"}


def test_the_heir_of_an_heir() -> None:
    town = three()
    leaves(town, "b", "c", "b")
    town.dies("c")
    leaves(town, "a", "b", "a")
    assert town.members["a"].heir(node_of("c")) == node_of("b"), "it is there still"
    town.dies("b")
    assert town.members["a"].heir(node_of("c")) == node_of("a")
    town.does("a", town.members["a"].leaves(Left(node_of("x"), 1, node_of("y"))))
    assert town.members["a"].heir(node_of("x")) is None
    town.does("a", town.members["a"].leaves(Left(node_of("y"), 1, node_of("x"))))
    assert town.members["a"].heir(node_of("x")) is None


def test_who_has_what_it_had_may_not_be_met_yet() -> None:
    town = three()
    leaves(town, "b", "c", "b")
    town.dies("c")
    town.add("d")
    leaves(town, "d", "c", "b")
    machine = town.members["d"]
    assert machine.heir(node_of("c")) is None
    assert machine.waits_for_heir(node_of("c"))
    assert not machine.waits_for_heir(node_of("x"))
    town.link("d", "a")
    assert machine.heir(node_of("c")) == node_of("b")
    assert not machine.waits_for_heir(node_of("c"))


def test_one_that_leaves_says_to_whom_until_it_is_back() -> None:
    town = three()
    town.does("b", town.members["b"].departs(node_of("c")))
    for name in "ac":
        assert town.members[name].lives[node_of("b")].heir == node_of("c")
    town.dies("b")
    town.add("b", epoch=2)
    town.link("b", "a")
    assert town.members["a"].lives[node_of("b")].heir == b""
