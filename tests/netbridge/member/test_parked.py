"""`stop --no-handover`: the group is parked, and nobody goes on until its live is back."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker.netbridge.election.question import Copy
from shmbroker.netbridge.member.standing import State
from tests.netbridge.member.group import LONG, Group, pair


def test_live_stops_with_no_handover_and_the_group_is_parked_until_it_returns() -> None:
    group = pair()
    group.stays_down.add("a")
    machine = group.machine("a")
    group.members["a"].does(machine.stop(group.hosts["a"].clock, hands_over=False))
    group.reaches("b", State.PARKED)
    group.rests()
    assert group.state("b") is State.PARKED
    group.returns("a")
    group.reaches("a", State.LIVE)
    group.reaches("b", State.IN_SYNC)


@pytest.mark.parametrize("voters", [0, 1])
def test_a_parked_backup_that_is_restarted_waits_on(voters: int) -> None:
    """It began the next epoch, with the vote or when the live was back and died, and the live
    serves by itself: it knows that all have parked."""
    group = pair(voters=voters)
    group.stays_down.add("a")
    machine = group.machine("a")
    group.members["a"].does(machine.stop(group.hosts["a"].clock, hands_over=False))
    group.reaches("b", State.PARKED)
    group.dies("b", power=True)
    group.returns("b")
    group.reaches("b", State.PARKED)
    group.rests()
    assert group.state("b") is State.PARKED
    group.returns("a")
    group.reaches("a", State.LIVE)
    group.reaches("b", State.IN_SYNC)


def test_who_parks_the_group_while_its_backup_hears_nothing_does_not_serve_again_alone() -> None:
    """Its backup has no record of that, and may go on when it knows that the live is dead."""
    group = pair(voters=0)
    group.stays_down.add("a")
    group.parts("a", "b")
    group.members["a"].does(group.machine("a").stop(group.hosts["a"].clock, hands_over=False))
    group.until(lambda: "a: ends" in group.lines())
    group.returns("a")
    group.reaches("a", State.HELD)
    group.rests()
    assert not group.serving
    group.heals()
    group.reaches("a", State.LIVE)
    group.reaches("b", State.IN_SYNC)


def test_who_parked_the_group_serves_again_after_a_restart_of_its_host() -> None:
    """Also if confirms were ahead of its disk once: all of it is synced at the end."""
    group = pair(fails_back=False)
    group.members["a"].does(group.machine("a").hands_over("b", group.hosts["a"].clock))
    group.reaches("b", State.LIVE)  # not the preferred one: it is not granted for its rank
    group.stays_down.add("b")
    machine, member = group.machine("b"), group.members["b"]
    machine.runs_ahead(group.hosts["b"].clock)
    member.does(machine.done())
    group.until(lambda: Copy("b") not in machine.listed)
    member.does(machine.stop(group.hosts["b"].clock, hands_over=False))
    group.reaches("a", State.PARKED)
    group.boots["b"] += 1
    group.returns("b")
    group.reaches("b", State.LIVE)
    group.reaches("a", State.IN_SYNC)


def test_who_parked_the_group_asks_again_if_no_voter_has_answered() -> None:
    group = pair()
    group.stays_down |= {"a", "v1"}
    machine = group.machine("a")
    group.members["a"].does(machine.stop(group.hosts["a"].clock, hands_over=False))
    group.reaches("b", State.PARKED)
    group.dies("v1")
    group.returns("a")
    group.reaches("a", State.HELD)
    group.returns("v1")
    group.reaches("a", State.LIVE)
    group.reaches("b", State.IN_SYNC)


def test_live_stops_with_no_handover_and_a_person_activates_its_backup() -> None:
    group = pair()
    group.stays_down.add("a")
    machine = group.machine("a")
    group.members["a"].does(machine.stop(group.hosts["a"].clock, hands_over=False))
    group.reaches("b", State.PARKED)
    clock = group.hosts["b"].clock
    group.members["b"].does(group.machine("b").command(is_forced=False, now=clock))
    group.reaches("b", State.ALONE)


def parked(**options: Any) -> Group:
    """By `a`, which stays away."""
    group = pair(**options)
    group.stays_down.add("a")
    machine = group.machine("a")
    group.members["a"].does(machine.stop(group.hosts["a"].clock, hands_over=False))
    group.reaches("b", State.PARKED)
    return group


def is_activated(group: Group, name: str) -> None:
    machine, clock = group.machine(name), group.hosts[name].clock
    group.members[name].does(machine.command(is_forced=False, now=clock))


def test_a_parked_backup_that_was_away_is_not_activated_beside_what_its_live_confirmed() -> None:
    group = parked(voters=0, fails_back=False)
    group.dies("b")
    group.returns("a")
    group.reaches("a", State.ALONE)
    assert group.write("a")
    group.dies("a")
    group.returns("b")
    group.reaches("b", State.PARKED)
    assert group.machine("b").unmet == "a"
    is_activated(group, "b")
    group.rests()
    assert group.serving == []
    assert group.machine("b").epoch == 1


def test_a_parked_backup_that_was_not_away_is_activated() -> None:
    group = parked(voters=0)
    is_activated(group, "b")
    group.reaches("b", State.ALONE)


def test_a_parked_backup_meets_the_new_disk_of_its_live_while_it_looks() -> None:
    changes = {"check_for_live": True, "check_wait": 1.0}
    group = parked(voters=0, changes=changes)
    group.dies("b")
    group.gets_a_new_disk("a")
    group.of_one["a"] = {"is_preferred": True}
    group.returns("a")
    group.returns("b")
    why = "waits for a (epoch 1); the journal of a is not of this node any more"
    group.until(lambda: group.machine("b").why == why)
    assert group.state("b") is State.HELD
    assert group.machine("b").unmet == "a"
    is_activated(group, "b")
    assert group.machine("b").why == why, "nothing is begun that nobody will answer"


def test_both_are_back_and_who_parked_the_group_has_lost_that_record() -> None:
    """Its host lost power before that was synced."""
    group = pair(voters=0, changes={"check_for_live": True, "check_wait": 1.0})
    group.stays_down.add("a")
    group.disks["a"].slow_until = LONG
    machine = group.machine("a")
    group.members["a"].does(machine.stop(group.hosts["a"].clock, hands_over=False))
    group.until(lambda: group.machine("b").is_parked)
    group.dies("a", power=True)
    group.dies("b")
    group.disks["a"].slow_until = 0.0
    group.returns("a")
    group.returns("b")
    group.reaches("b", State.LIVE)
    group.reaches("a", State.IN_SYNC)
