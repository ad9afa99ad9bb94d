"""Nobody to ask: both choices of `on-partition`, a test for each row of the table of §3.6."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.member.said import GoAhead
from shmbroker.netbridge.member.standing import HandedOver, State
from shmbroker.netbridge.simulation.replication import member
from tests.netbridge.member.group import Group, is_told_of_the_death, pair, three


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


@pytest.mark.parametrize("told", ["bc", "cb", "b", "c"])
def test_of_several_that_were_in_sync_with_a_dead_live_the_preferred_one_goes_on(told: str) -> None:
    """Also if the kernel of another one's host has told."""
    group = three()
    group.dies("a")
    group.reaches("b", State.HELD)
    group.reaches("c", State.HELD)
    for name in told:
        is_told_of_the_death(group, name)
    group.reaches("b", State.LIVE)
    group.reaches("c", State.IN_SYNC)
    assert group.machine("c").last.holder == "b"
    assert group.watch.begun == {1: "a", 2: "b"}


@pytest.mark.parametrize("told", ["bc", "cb"])
def test_who_knows_of_the_death_before_its_link_is_lost_waits_for_the_others(told: str) -> None:
    group = three()
    group.stays_down.add("a")
    for name in told:
        is_told_of_the_death(group, name)
    group.dies("a")
    group.reaches("b", State.LIVE)
    group.reaches("c", State.IN_SYNC)
    assert group.watch.begun == {1: "a", 2: "b"}


def test_a_dead_live_had_handed_over_to_another_one() -> None:
    group = three()
    machine = group.machine("c")
    machine.took(machine.last, (HandedOver("b"),))
    is_told_of_the_death(group, "c")
    assert group.state("c") is State.IN_SYNC


def test_the_live_and_another_backup_are_proven_to_be_dead() -> None:
    """The backup may have been live in between, and have confirmed alone: it is waited for."""
    group = three()
    group.dies("a")
    group.dies("c")
    group.reaches("b", State.HELD)
    is_told_of_the_death(group, "b")
    assert group.state("b") is State.HELD
    assert group.machine("b").why == "waits for c (epoch 1)"
    is_told_of_the_death(group, "b", "c")
    group.rests()
    assert group.state("b") is State.HELD
    group.returns("c")
    group.reaches("b", State.LIVE)


def test_who_took_over_from_a_dead_live_and_is_dead_as_well_is_waited_for() -> None:
    """What it has confirmed alone is in its journal only."""
    group = three()
    group.dies("a")
    group.reaches("b", State.HELD)
    group.reaches("c", State.HELD)
    group.rests(0.1)  # they have met
    is_told_of_the_death(group, "b")
    group.parts("b", "c")
    clock = group.hosts["b"].clock
    go_ahead = GoAhead(group.machine("b").claim)
    group.members["b"].does(group.machine("b").heard("c", go_ahead, clock))
    group.reaches("b", State.ALONE)
    assert group.write("b", "alone")
    group.dies("b")
    group.heals()
    is_told_of_the_death(group, "c")
    is_told_of_the_death(group, "c", "b")
    group.rests()
    assert group.state("c") is State.HELD
    group.returns("b")
    group.reaches("b", State.LIVE)
    group.reaches("c", State.IN_SYNC)


def test_a_replica_that_is_proven_dead_begins_no_epoch() -> None:
    """Its live dies before the other one hears of it: that one begins the next, and no other."""
    group = three()
    group.members["b"].host.stands_until = group.world.now + 1.0
    group.dies("c")
    is_told_of_the_death(group, "a", "c")
    group.rests(0.3)
    group.dies("a")
    is_told_of_the_death(group, "b")
    group.returns("c")
    group.reaches("b", State.LIVE)
    group.reaches("c", State.IN_SYNC)
    assert group.watch.begun == {1: "a", 2: "b"}


def test_a_live_that_is_back_waits_for_who_was_told_of_its_death(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That one runs `on-promote` still: it neither serves nor follows."""
    monkeypatch.setattr(member, "PROMOTE_SECONDS", (5.0, 5.0))
    group = pair(voters=0, has_command=True, fails_back=False)
    group.dies("a")
    group.reaches("b", State.HELD)
    is_told_of_the_death(group, "b")
    assert group.state("b") is State.PROMOTING
    group.returns("a")
    group.reaches("a", State.HELD)
    group.until(lambda: group.serving == ["b"])
    assert group.watch.begun == {1: "a", 2: "b"}


def test_who_goes_on_runs_its_command_until_that_says_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "PROMOTE_SECONDS", (0.05, 0.05))
    group = three(has_command=True)
    group.dies("a")
    group.reaches("b", State.HELD)
    group.reaches("c", State.HELD)
    group.dies("c")
    is_told_of_the_death(group, "b")
    group.returns("c")
    group.reaches("b", State.PROMOTING)
    clock = group.hosts["b"].clock
    group.members["b"].does(group.machine("b").promoted(False, clock))
    assert group.machine("b").why == "on-promote said no"
    group.members["b"].does(group.machine("b").heard("c", group.machine("c").hello, clock))
    assert group.state("b") is State.HELD, "it was asked a moment ago"
    group.reaches("b", State.PROMOTING)
    group.reaches("b", State.LIVE)
    assert group.watch.begun == {1: "a", 2: "b"}


def test_who_was_granted_an_epoch_runs_its_command_until_that_says_yes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(member, "PROMOTE_SECONDS", (0.05, 0.05))
    group = pair(has_command=True)
    group.dies("a")
    group.reaches("b", State.PROMOTING)
    group.members["b"].does(group.machine("b").promoted(False, group.hosts["b"].clock))
    assert group.machine("b").why == "on-promote said no"
    group.reaches("b", State.PROMOTING)
    group.reaches("b", State.ALONE)
    assert group.watch.begun == {1: "a", 2: "b"}


def test_of_several_another_one_goes_on_if_the_command_of_the_first_says_no(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(member, "PROMOTE_SECONDS", (0.05, 0.05))
    group = three(has_command=True)
    group.dies("a")
    group.reaches("b", State.HELD)
    group.reaches("c", State.HELD)
    is_told_of_the_death(group, "b")
    group.reaches("b", State.PROMOTING)
    group.members["b"].does(group.machine("b").promoted(False, group.hosts["b"].clock))
    assert group.machine("b").why == "on-promote said no"
    group.reaches("c", State.LIVE)
    group.reaches("b", State.IN_SYNC)
    assert group.watch.begun == {1: "a", 2: "c"}


def test_of_several_another_one_goes_on_if_the_first_was_restarted() -> None:
    group = three()
    group.dies("a")
    group.reaches("b", State.HELD)
    group.reaches("c", State.HELD)
    group.dies("b")
    group.returns("b")
    group.reaches("b", State.HELD)
    is_told_of_the_death(group, "c")
    group.reaches("c", State.LIVE)
    group.reaches("b", State.IN_SYNC)
    assert group.watch.begun == {1: "a", 2: "c"}


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


@pytest.mark.parametrize("has_command", [False, True])
def test_continue_alone_and_several_that_reach_each_other_lose_their_live(
    has_command: bool,
) -> None:
    group = three(splits=True, has_command=has_command)
    group.dies("a")
    group.until(lambda: bool(group.serving))
    group.reaches("b", State.LIVE)
    group.reaches("c", State.IN_SYNC)
    assert "conflict" not in group.lines()
    assert "c: took over" not in group.lines()


def test_continue_alone_and_a_backup_waits_for_another_one_that_follows_the_live() -> None:
    group = three(splits=True)
    group.parts("a", "c")
    group.reaches("c", State.HELD)
    group.rests()
    assert group.serving == ["a"]
    group.heals()
    group.reaches("c", State.IN_SYNC)
    assert "conflict" not in group.lines()


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
