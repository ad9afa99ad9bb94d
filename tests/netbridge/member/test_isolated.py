"""`network-check`: a member that reaches none of its peers never activates, and a live suspends."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker.netbridge.member.core import NOT_SINCE
from shmbroker.netbridge.member.standing import State
from shmbroker.netbridge.replicated.shown import replication_of
from tests.netbridge.member.group import Group, pair

WHY = "it reaches none of gateway:22"


def isolate(group: Group, name: str, why: str = WHY) -> None:
    member = group.members[name]
    member.does(group.machine(name).isolated(why, group.hosts[name].clock))


def test_a_live_that_is_isolated_confirms_and_delivers_nothing() -> None:
    group = pair()
    live, host = group.machine("a"), group.hosts["a"]
    assert group.write("a")
    isolate(group, "a")
    assert not group.write("a")
    assert live.serves_until(host.clock) == 0
    assert replication_of(live) == f"suspended: {WHY}"
    assert group.state("b") is State.IN_SYNC
    isolate(group, "a", "")
    assert group.write("a")
    assert live.serves_until(host.clock) > host.clock
    assert replication_of(live) == "in sync"
    assert live.epoch == 1


@pytest.mark.parametrize("voters", [0, 1])
def test_a_backup_that_is_isolated_does_not_take_over(voters: int) -> None:
    group = pair(voters=voters, splits=not voters)
    isolate(group, "b")
    group.dies("a")
    group.reaches("b", State.HELD)
    group.rests()
    assert group.state("b") is State.HELD
    assert group.machine("b").why == WHY
    isolate(group, "b", "")
    group.reaches("b", State.ALONE)
    assert group.machine("b").epoch >= 2


def test_what_is_handed_over_to_an_isolated_backup_is_not_lost() -> None:
    group = pair()
    isolate(group, "b")
    group.stays_down.add("a")
    group.members["a"].does(group.machine("a").stop(group.hosts["a"].clock))
    group.reaches("b", State.HELD)
    isolate(group, "b", "")
    group.reaches("b", State.ALONE)


def test_a_new_live_waits_until_it_reaches_somebody() -> None:
    group = Group(changes={"is_checked": True})
    group.starts()
    group.reaches("a", State.HELD)
    assert group.machine("a").why == "it has reached none of its peers yet"
    isolate(group, "a")
    assert group.machine("a").why == WHY
    isolate(group, "a", "")
    isolate(group, "b", "")
    group.reaches("a", State.LIVE)


def test_force_is_a_persons_word() -> None:
    group = pair(voters=0)
    isolate(group, "b")
    group.dies("a")
    group.reaches("b", State.HELD)
    clock = group.hosts["b"].clock
    group.members["b"].does(group.machine("b").command(is_forced=True, now=clock))
    group.reaches("b", State.ALONE)
    assert group.write("b")


def guarded_by_a_check(**options: Any) -> Group:
    """Nobody is asked, whoever is lost is gone on without, and all are well."""
    group = Group(voters=0, splits=True, changes={"is_checked": True}, fails_back=False, **options)
    group.starts()
    for name in group.names_of_members:
        isolate(group, name, "")
    group.reaches("a", State.LIVE)
    group.reaches("b", State.IN_SYNC)
    return group


def test_who_has_lost_a_link_goes_on_alone_when_it_has_reached_a_peer_since() -> None:
    """The link is lost before so many attempts have failed that its host counts as isolated."""
    group = guarded_by_a_check()
    group.parts("a", "b")
    group.reaches("a", State.SUSPENDED)
    group.reaches("b", State.HELD)
    group.rests()
    assert group.machine("b").why == NOT_SINCE
    assert (group.machine("a").epoch, group.machine("b").epoch) == (1, 1)
    isolate(group, "b", "")
    group.until(lambda: group.state("b") is State.ALONE, 0.2)
    isolate(group, "a")
    assert group.write("b")
    group.heals()
    isolate(group, "a", "")
    group.reaches("a", State.IN_SYNC)
    assert group.serving == ["b"]
    assert "conflict" not in group.lines()


def test_a_live_that_has_reached_a_peer_since_goes_on_without_its_backup() -> None:
    group = guarded_by_a_check()
    group.dies("b")
    group.reaches("a", State.SUSPENDED)
    isolate(group, "a", "")
    group.until(lambda: group.state("a") is State.ALONE, 0.2)
    assert group.machine("a").epoch == 2
    assert "a: not isolated" not in group.lines().split("suspended")[1]


def test_a_backup_that_was_isolated_for_a_moment_meets_the_others_first() -> None:
    """Also while it compares what it has with another backup."""
    group = guarded_by_a_check(members=3, max_replicas=2)
    group.until(lambda: len(group.machine("a").backups) == 2)
    group.parts("a", "b", "c")
    group.reaches("b", State.ASKING)
    isolate(group, "b")
    isolate(group, "b", "")
    group.rests(0.3)
    assert group.state("b") is State.HELD


def joining_after_an_isolation(members: int) -> Group:
    """`b` serves, and `a`, a new live that it has not met, is isolated no more."""
    group = Group(members, changes={"is_checked": True}, fails_back=False)
    group.of_one["b"] = {"is_preferred": True}
    group.parts("a", *group.names_of_members[1:])
    group.starts(*group.names[1:])
    for name in group.names_of_members[1:]:
        isolate(group, name, "")
    group.reaches("b", State.LIVE if members > 2 else State.ALONE)
    group.returns("a")
    group.machine("a").fresh_node = b"F" * 16
    group.reaches("a", State.HELD)
    isolate(group, "a", "")
    group.heals()
    return group


@pytest.mark.parametrize(("members", "state"), [(2, State.IN_SYNC), (3, State.WAITING)])
def test_a_new_live_that_was_isolated_founds_no_node_beside_a_live(
    members: int, state: State
) -> None:
    group = joining_after_an_isolation(members)
    group.reaches("a", state)
    group.rests()
    assert group.state("a") is state
    assert group.machine("a").node in (b"", group.machine("b").node)
    assert members > 2 or group.machine("a").stream == 1  # it was not left in between


def test_a_new_live_that_was_isolated_founds_no_node_if_the_live_that_it_has_met_is_gone() -> None:
    group = joining_after_an_isolation(2)
    group.until(lambda: "b" in group.machine("a").peers)
    group.dies("b")
    group.rests()
    assert group.state("a") is State.JOINING
