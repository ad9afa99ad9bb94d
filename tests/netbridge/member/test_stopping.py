"""A stop in good order of a live that has several replicas, or is about to go on without one."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.election.question import Copy, Grant
from shmbroker.netbridge.member.action import Begin, End, StopServing
from shmbroker.netbridge.member.core import NEVER
from shmbroker.netbridge.member.standing import State
from tests.netbridge.member.group import LONG, Group, pair, three


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


def begins_without(group: Group, member: str) -> None:
    """An epoch that is granted to `a`, whose disk is slow."""
    group.disks["a"].slow_until = LONG
    group.dies(member)
    group.until(lambda: group.machine("a").granted is not None)


def test_a_stop_before_it_serves_ends_what_is_made_for_programs() -> None:
    group = Group(voters=0, splits=True)
    group.disks["a"].slow_until = LONG
    group.starts("a")
    group.reaches("a", State.BEGINNING)
    done = group.machine("a").stop(group.hosts["a"].clock)
    assert [type(each) for each in done] == [StopServing, End]
    group.stays_down.add("a")
    group.members["a"].does(done)
    group.reaches("a", State.STOPPED)


def test_a_stop_while_an_epoch_begins() -> None:
    group = of_three(1)
    begins_without(group, "c")
    stops(group, "a")
    is_handed_over(group)
    assert group.machine("b").epoch == 3


def test_a_stop_with_no_handover_while_an_epoch_begins() -> None:
    group = of_three(1)
    begins_without(group, "c")
    stops(group, "a", hands_over=False)
    group.reaches("b", State.PARKED)
    assert "a: handed over nobody: parked" in group.lines()


def test_a_stop_while_an_epoch_begins_that_cannot_be_written() -> None:
    group = of_three(1)
    begins_without(group, "c")
    group.disks["a"].fails_until = LONG
    stops(group, "a")
    group.reaches("a", State.STOPPED)
    group.reaches("b", State.ALONE)


@pytest.mark.parametrize("is_stopped", [True, False])
def test_voters_had_let_the_live_go_on_when_it_hands_over(is_stopped: bool) -> None:
    group = of_three(1)
    process, live = group.members["a"], group.machine("a")
    if is_stopped:
        group.dies("c")
        stops(group, "a")
    else:
        process.does(live.hands_over("b", group.hosts["a"].clock))
    assert live.state is State.HANDING_OVER
    live.taken(Grant(2, "a", (Copy("a"), Copy("b"))), group.hosts["a"].clock)
    process.does(live.done())
    if is_stopped:
        is_handed_over(group)
        assert group.machine("b").epoch == 3
    else:
        group.until(lambda: live.epoch == 2)
        assert live.state is State.LIVE
        assert live.hands_until == group.machine("b").closing_until == NEVER


def test_voters_had_let_the_live_go_on_when_it_hands_over_because_its_disk_is_full() -> None:
    group = of_three(1)
    live, now = group.machine("a"), group.hosts["a"].clock
    live.cannot_write(now)
    assert live.state is State.HANDING_OVER
    live.taken(Grant(2, "a", (Copy("a"), Copy("b"))), now)
    assert [type(each) for each in live.done()].count(Begin) == 1
    assert live.state is State.SUSPENDED, "it hands over once that epoch is written"
    assert live.granted is not None
