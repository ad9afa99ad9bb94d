"""A stop in good order of a live that has several replicas, or is about to go on without one."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.member.standing import State
from tests.netbridge.member.group import Group, pair, three


def of_three(voters: int) -> Group:
    """Of which two are in sync."""
    if not voters:
        return three()
    group = pair(members=3, voters=voters, max_replicas=2, fails_back=False)
    group.until(lambda: len(group.machine("a").backups) == 2)
    return group


def stops(group: Group, *names: str, hands_over: bool = True) -> None:
    for name in names:
        group.stays_down.add(name)
        member, now = group.members[name], group.hosts[name].clock
        member.does(member.machine.stop(now, hands_over=hands_over))


def is_handed_over(group: Group) -> None:
    group.reaches("b", State.ALONE)
    assert "a: handed over b" in group.lines()


def test_another_replica_was_lost_before() -> None:
    group = three()
    group.dies("c")
    group.reaches("a", State.SUSPENDED)
    assert not group.write("a")
    stops(group, "a")
    is_handed_over(group)


@pytest.mark.parametrize("voters", [0, 1])
def test_another_replica_is_lost_meanwhile(voters: int) -> None:
    group = of_three(voters)
    group.dies("c")
    stops(group, "a")
    assert group.state("a") is State.HANDING_OVER
    is_handed_over(group)


@pytest.mark.parametrize("has_voters", [True, False])
def test_all_are_stopped_at_once_but_one(has_voters: bool) -> None:
    group = of_three(1)
    if not has_voters:
        group.dies("v1")
    stops(group, "a", "c")
    assert group.state("a") is State.HANDING_OVER
    is_handed_over(group)
