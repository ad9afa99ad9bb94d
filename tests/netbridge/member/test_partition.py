"""Nobody to ask: both choices of `on-partition`, a test for each row of the table of §3.6."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.member.standing import State
from tests.netbridge.member.group import Group, pair


def lost_replica(*, splits: bool, how: str) -> Group:
    group = pair(voters=0, splits=splits)
    if how == "crash":
        group.dies("b")
    elif how == "hang":
        group.hosts["b"].stands_until = 1e6
        group.write("a")
    else:
        group.parts("a", "b")
    return group


@pytest.mark.parametrize("how", ["crash", "hang", "network"])
def test_stop_confirming_and_the_live_loses_its_replica(how: str) -> None:
    group = lost_replica(splits=False, how=how)
    group.reaches("a", State.SUSPENDED)
    live = group.machine("a")
    assert live.may_write()
    assert not live.serves_until(group.hosts["a"].clock)
    assert not group.write("a")
    assert live.epoch == 1


@pytest.mark.parametrize("how", ["crash", "hang", "network"])
def test_continue_alone_and_the_live_loses_its_replica(how: str) -> None:
    group = lost_replica(splits=True, how=how)
    group.reaches("a", State.ALONE)
    assert group.write("a")
    assert group.machine("a").epoch == 2


def test_stop_confirming_goes_on_by_itself_when_a_replica_is_in_sync() -> None:
    group = lost_replica(splits=False, how="crash")
    group.reaches("a", State.SUSPENDED)
    group.returns("b")
    group.reaches("a", State.LIVE)
    assert group.write("a")


def test_stop_confirming_goes_on_by_command() -> None:
    group = lost_replica(splits=False, how="crash")
    group.reaches("a", State.SUSPENDED)
    group.members["a"].does(group.machine("a").continues(group.hosts["a"].clock))
    group.reaches("a", State.ALONE)
    assert group.machine("a").epoch == 2
    assert group.write("a")


@pytest.mark.parametrize("splits", [False, True])
def test_a_replica_that_left_gracefully_is_not_waited_for(splits: bool) -> None:
    group = pair(voters=0, splits=splits)
    group.stays_down.add("b")
    group.members["b"].does(group.machine("b").stop(group.hosts["b"].clock))
    group.reaches("a", State.ALONE)
    assert group.machine("a").epoch == 1
    assert group.write("a")


def test_a_replica_whose_death_is_proven_is_not_waited_for() -> None:
    group = lost_replica(splits=False, how="crash")
    group.reaches("a", State.SUSPENDED)
    group.members["a"].does(group.machine("a").died("b", group.hosts["a"].clock))
    group.reaches("a", State.ALONE)
    assert group.write("a")


def test_stop_confirming_and_a_backup_loses_its_live() -> None:
    group = pair(voters=0)
    group.dies("a")
    group.reaches("b", State.HELD)
    group.rests()
    assert group.state("b") is State.HELD


def test_stop_confirming_and_the_death_of_the_live_is_proven() -> None:
    group = pair(voters=0)
    group.dies("a")
    group.reaches("b", State.HELD)
    group.members["b"].does(group.machine("b").died("a", group.hosts["b"].clock))
    group.reaches("b", State.ALONE)
    assert group.machine("b").epoch == 2


def test_a_member_that_was_restarted_may_not_use_a_proof_of_death() -> None:
    group = pair(voters=0)
    group.dies("a")
    group.dies("b")
    group.returns("b")
    group.reaches("b", State.HELD)
    group.members["b"].does(group.machine("b").died("a", group.hosts["b"].clock))
    group.rests()
    assert group.state("b") is State.HELD


def test_stop_confirming_and_the_live_hands_over() -> None:
    group = pair(voters=0)
    group.stays_down.add("a")
    group.members["a"].does(group.machine("a").stop(group.hosts["a"].clock))
    group.reaches("b", State.ALONE)


def test_continue_alone_and_a_backup_loses_its_live() -> None:
    group = pair(voters=0, splits=True)
    group.dies("a")
    group.reaches("b", State.ALONE)
    assert group.machine("b").epoch == 2


def test_stop_confirming_and_they_meet_again() -> None:
    group = lost_replica(splits=False, how="network")
    group.reaches("a", State.SUSPENDED)
    group.reaches("b", State.HELD)
    group.heals()
    group.reaches("b", State.IN_SYNC)
    group.reaches("a", State.LIVE)
    assert group.machine("a").epoch == 1


def test_continue_alone_and_both_served_so_one_stays_and_the_other_sets_its_tail_aside() -> None:
    group = lost_replica(splits=True, how="network")
    group.reaches("a", State.ALONE)
    group.reaches("b", State.ALONE)
    assert group.write("a", "of a")
    assert group.write("b", "of b")
    group.heals()
    group.until(lambda: len(group.serving) == 1)
    group.reaches("b", State.IN_SYNC)
    assert group.serving == ["a"]  # of the same epoch the preferred one stays
    assert "conflict" in group.lines()
    assert group.aside == {"of b"}


def test_both_were_forced_to_the_same_epoch_and_both_stop_until_one_yields() -> None:
    group = pair(voters=0)
    group.parts("a", "b")
    group.reaches("b", State.HELD)
    group.dies("a")
    group.returns("a")
    group.reaches("a", State.HELD)
    for name in ("a", "b"):
        machine, clock = group.machine(name), group.hosts[name].clock
        group.members[name].does(machine.command(is_forced=True, now=clock))
        group.reaches(name, State.ALONE)
    group.heals()
    group.until(lambda: not group.serving)
    group.rests()
    assert {group.state("a"), group.state("b")} == {State.CONFLICT}
