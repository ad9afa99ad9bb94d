"""Starting: a test for each row of the table of §3.5."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.election.question import Copy
from shmbroker.netbridge.member.action import Promote, Tell
from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.member.options import CONTINUE_ALONE, MemberOptions
from shmbroker.netbridge.member.said import Hello, Join
from shmbroker.netbridge.member.standing import Past, Position, State
from tests.netbridge.member.group import STEP_SECONDS, Group, alerts, pair, three


def test_a_fresh_live_founds_a_node_and_serves_in_epoch_1() -> None:
    group = Group()
    group.starts("a", "v1")
    group.reaches("a", State.ALONE)
    assert group.machine("a").epoch == 1
    assert group.machine("a").node


def test_a_fresh_backup_without_a_live_joins_for_ever() -> None:
    group = Group()
    group.starts("b", "v1")
    group.rests(10.0)
    assert group.state("b") is State.JOINING


@pytest.mark.parametrize("first", ["a", "b"])
def test_live_and_backup_start_in_any_order(first: str) -> None:
    group = Group()
    group.starts(first, "v1")
    group.rests()
    group.returns("b" if first == "a" else "a")
    group.reaches("a", State.LIVE)
    group.reaches("b", State.IN_SYNC)


@pytest.mark.parametrize("voters", [0, 1])
def test_a_member_that_was_live_alone_serves(voters: int) -> None:
    group = Group(voters=voters)
    group.starts("a")
    group.reaches("a", State.ALONE)
    group.dies("a", power=True)
    group.returns("a")
    group.reaches("a", State.ALONE)
    assert group.machine("a").epoch == 1


def stops(group: Group, name: str) -> None:
    group.stays_down.add(name)
    group.members[name].does(group.machine(name).stop(group.hosts[name].clock))
    group.rests()


def test_a_backup_takes_over_after_both_were_stopped_and_started() -> None:
    """The live serves again in its epoch, and its voters had other lists of that before."""
    group = pair(voters=1, fails_back=False)
    stops(group, "b")
    stops(group, "a")
    group.returns("a")
    group.reaches("a", State.ALONE)
    group.returns("b")
    group.reaches("b", State.IN_SYNC)
    group.dies("a")
    group.until(lambda: group.serving == ["b"])


def test_a_member_that_was_live_alone_is_held_if_a_partner_knows_a_higher_epoch() -> None:
    last = Position(3, "a", 9, 1)
    past = Past(b"N" * 16, last, (Copy("a"),))
    options = MemberOptions("a", True, ("a", "b"))
    machine = Member(options, past, lambda position: True, boot="1", life="1", now=0.0)
    machine.start(0.0)
    machine.peer_up("b", 0.1)
    newer = Position(5, "b", 12, 2)
    machine.heard("b", Hello(past.node, newer, serves=False, epoch=5), 0.1)
    machine.tick(1.0)
    assert machine.state is State.HELD
    assert machine.why == "b has begun epoch 5"


def test_a_member_to_which_the_node_was_handed_over_while_it_was_down_asks_its_command() -> None:
    past = Past(b"N" * 16, Position(1, "a", 9, 1), (Copy("a"), Copy("b")), handed_to="b")
    options = MemberOptions("b", False, ("a", "b"), has_command=True)
    machine = Member(options, past, lambda position: True, boot="1", life="1", now=0.0)
    machine.start(0.0)
    assert Promote() in machine.tick(1.0)
    assert machine.state is State.PROMOTING


def test_a_member_whose_epoch_another_one_serves_joins_that() -> None:
    """Both have begun it, each on its side of a partition, and this one was stopped."""
    last = Position(2, "a", 9, 1)
    past = Past(b"N" * 16, last, (Copy("a"), Copy("c")))
    options = MemberOptions("a", True, ("a", "b", "c"), on_partition=CONTINUE_ALONE)
    machine = Member(options, past, lambda position: True, boot="1", life="1", now=0.0)
    machine.start(0.0)
    for name, holder in (("b", "b"), ("c", "b")):
        machine.peer_up(name, 0.1)
        theirs = Position(2, holder, 12, 2)
        machine.heard(name, Hello(past.node, theirs, serves=name == "b", epoch=2), 0.1)
    machine.tick(1.0)
    said = machine.tick(1.0 + options.retry_wait)
    assert any(isinstance(each, Tell) and isinstance(each.what, Join) for each in said)
    assert machine.live == "b"


def test_who_was_active_last_is_known_by_its_journal_whatever_its_role_is() -> None:
    group = pair()
    group.dies("a")
    group.reaches("b", State.ALONE)
    group.dies("b")
    group.returns("b")
    group.reaches("b", State.ALONE)
    assert group.machine("b").epoch == 2


@pytest.mark.parametrize(("voters", "state"), [(1, State.ALONE), (0, State.HELD)])
def test_a_member_that_had_a_partner_in_sync_asks_or_is_held(voters: int, state: State) -> None:
    group = pair(voters=voters)
    group.dies("b")
    group.dies("a")
    group.returns("a")
    group.reaches("a", state)
    group.rests()
    assert group.state("a") is state


def test_a_member_that_had_a_partner_in_sync_says_whom_it_waits_for() -> None:
    group = pair()
    group.dies("v1")
    group.dies("b")
    group.dies("a")
    group.returns("a")
    group.reaches("a", State.HELD)
    assert group.machine("a").why == "waits for b (epoch 1)"
    assert "a: held waits for b (epoch 1)" in group.lines()


def test_a_member_that_had_a_partner_in_sync_serves_with_continue_alone() -> None:
    group = pair(voters=0, splits=True)
    group.dies("b")
    group.dies("a")
    group.returns("a")
    group.reaches("a", State.ALONE)
    assert group.machine("a").epoch == 2


def test_a_replica_whose_host_was_restarted_is_no_candidate() -> None:
    group = pair()
    group.dies("a")
    group.dies("b", power=True)
    group.returns("b")
    group.reaches("b", State.HELD)
    group.rests()
    assert not group.serving
    group.returns("a")
    group.until(lambda: len(group.serving) == 1)


def test_a_partner_is_live_and_it_joins() -> None:
    group = pair(fails_back=False)
    group.dies("a")
    group.reaches("b", State.ALONE)
    group.returns("a")
    group.reaches("a", State.IN_SYNC)
    assert group.serving == ["b"]


def test_a_partner_is_live_and_without_check_for_live_server_it_does_not_start() -> None:
    group = pair()
    group.dies("a")
    group.reaches("b", State.ALONE)
    group.of_one["a"] = {"check_for_live": False}
    group.returns("a")
    group.stays_down.add("a")
    group.until(lambda: "a: stale stale: b serves epoch 2" in group.lines())
    group.rests(0.1)
    assert not group.hosts["a"].is_up
    assert group.serving == ["b"]


@pytest.mark.parametrize("voters", [0, 1])
@pytest.mark.parametrize("power", [False, True])
def test_both_are_back_after_a_power_cut_and_the_newest_serves(voters: int, power: bool) -> None:
    group = pair(voters=voters)
    assert group.write("a")
    group.parts("a", "b")
    group.dies("a", power=power)
    group.dies("b", power=power)
    group.heals()
    group.returns("a")
    group.returns("b")
    group.until(lambda: len(group.serving) == 1)
    assert group.write(group.serving[0])


def test_who_is_let_ahead_while_this_one_starts_was_not_live_before() -> None:
    """Both are back: the other one syncs, and check_for_live has no say in that."""
    group = pair(voters=0, changes={"check_for_live": False})
    group.dies("a")
    group.dies("b")
    group.returns("b")
    group.reaches("b", State.HELD)
    group.stays_down.add("a")
    group.returns("a")
    group.until(lambda: len(group.serving) == 1)
    group.reaches("b" if group.serving == ["a"] else "a", State.IN_SYNC)


def test_the_newest_is_lost_for_good_and_a_person_activates_the_other_one() -> None:
    group = pair()
    group.dies("a")
    group.reaches("b", State.ALONE)
    group.dies("b")
    group.returns("a")
    group.reaches("a", State.HELD)
    group.members["a"].does(group.machine("a").command(is_forced=True, now=group.hosts["a"].clock))
    group.reaches("a", State.ALONE)
    assert "a: forced epoch 1, then 3" in group.lines()  # 2 was granted to b
    assert group.machine("a").is_forced


def with_a_new_disk(group: Group, name: str = "a") -> None:
    """It is preferred as before, and to itself it starts for the first time."""
    group.dies(name, power=True)
    group.gets_a_new_disk(name)
    group.of_one[name] = {"is_preferred": True}


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_preferred_member_with_a_new_disk_founds_no_node_beside_one_that_is_held(
    first: str,
) -> None:
    group = pair(voters=0, fails_back=False)
    with_a_new_disk(group)
    group.dies("b")
    for name in (first, "b" if first == "a" else "a"):
        group.returns(name)
        group.rests(0.2)
    group.reaches("b", State.HELD)
    group.reaches("a", State.HELD)
    group.rests(5.0)
    assert group.serving == []
    assert group.machine("a").why == "b has a node (epoch 1), and the journal here is new"
    why = "waits for a (epoch 1); the journal of a is not of this node any more"
    assert group.machine("b").why == why
    assert f"b: held {why}" in group.lines()
    assert group.machine("b").unmet == "a", "only --force begins an epoch"
    group.members["b"].does(group.machine("b").command(is_forced=True, now=group.hosts["b"].clock))
    group.reaches("a", State.IN_SYNC)
    assert group.serving == ["b"]
    assert group.machine("a").node == group.machine("b").node


def test_a_preferred_member_with_a_new_disk_founds_a_node_when_nobody_has_one_any_more() -> None:
    """A person empties the store of the other one, and does not need to restart this one."""
    group = pair(voters=0, fails_back=False)
    with_a_new_disk(group)
    group.dies("b")
    group.returns("a")
    group.returns("b")
    group.reaches("a", State.HELD)
    group.dies("b")
    group.rests(5.0)
    assert group.state("a") is State.HELD, "that node is not seen just now"
    group.gets_a_new_disk("b")
    group.returns("b")
    group.reaches("a", State.LIVE)
    group.reaches("b", State.IN_SYNC)


@pytest.mark.parametrize("lost", ["a", "b"])
@pytest.mark.parametrize("first", ["a", "b"])
def test_a_member_with_a_new_disk_holds_up_nobody_who_may_continue_alone(
    lost: str, first: str
) -> None:
    group = pair(voters=0, splits=True, fails_back=False)
    group.parts("a", "b")
    with_a_new_disk(group, lost)
    other = "b" if lost == "a" else "a"
    group.dies(other)
    group.heals()
    for name in (first, "b" if first == "a" else "a"):
        group.returns(name)
    group.reaches(other, State.ALONE, State.LIVE)
    group.reaches(lost, State.IN_SYNC)
    assert group.serving == [other]


def test_a_member_with_a_new_disk_holds_up_nobody_who_is_called() -> None:
    group = pair(voters=0, fails_back=False, changes={"activates": False})
    with_a_new_disk(group)
    group.dies("b")
    group.returns("a")
    group.returns("b")
    group.reaches("b", State.HELD)
    group.until(lambda: "a" in group.machine("b").peers)
    group.members["b"].does(group.machine("b").command(is_forced=False, now=group.hosts["b"].clock))
    group.reaches("a", State.IN_SYNC)
    assert group.serving == ["b"]


def test_who_was_killed_before_the_node_that_it_founded_began_joins_another_one() -> None:
    options = MemberOptions("a", True, ("a", "b"), check_for_live=True)
    past = Past(b"N" * 16)
    machine = Member(options, past, lambda position: True, boot="1", life="1", now=0.0)
    machine.start(0.0)
    machine.peer_up("b", 0.1)
    theirs = Hello(b"O" * 16, Position(5, "b", 12, 2), serves=True, epoch=5)
    said = machine.heard("b", theirs, 0.1)
    assert any(isinstance(each, Tell) and isinstance(each.what, Join) for each in said)
    assert machine.state is State.JOINING


def test_a_preferred_member_with_a_new_disk_waits_until_a_live_has_connected() -> None:
    changes = {"check_for_live": False, "connect_wait": 3.0}
    group = pair(voters=1, fails_back=False, changes=changes)
    with_a_new_disk(group)
    group.reaches("b", State.ALONE)
    group.parts("a", "b")
    group.returns("a")
    group.rests(1.0)
    assert group.state("a") is State.STARTING
    group.heals()
    group.reaches("a", State.IN_SYNC)
    assert group.serving == ["b"]


def test_a_first_start_does_not_wait_longer_than_until_all_are_met() -> None:
    group = Group(voters=0, changes={"check_for_live": False, "connect_wait": 1000.0})
    group.starts("a")
    group.rests()
    assert group.state("a") is State.STARTING
    group.returns("b")
    group.until(lambda: group.state("a") is State.LIVE, 5.0)


def test_a_first_start_waits_for_nobody_for_ever() -> None:
    group = Group(voters=0, changes={"check_for_live": False, "connect_wait": 3.0})
    group.starts("a")
    group.rests(2.0)
    assert group.state("a") is State.STARTING
    group.rests(2.0)
    assert group.state("a") is State.ALONE


def test_a_live_says_that_another_member_serves_another_node() -> None:
    past = Past(b"N" * 16, Position(1, "a", 9, 1), (Copy("a"),))
    options = MemberOptions("a", True, ("a", "b"))
    machine = Member(options, past, lambda position: True, boot="1", life="1", now=0.0)
    machine.state = State.ALONE
    machine.peer_up("b", 0.1)
    theirs = Hello(b"O" * 16, Position(1, "b", 3, 2), serves=True, epoch=1)
    assert "conflict" in alerts(machine.heard("b", theirs, 0.1))
    assert machine.state is State.ALONE


def test_a_member_with_a_new_disk_that_follows_goes_on_when_the_last_one_is_met() -> None:
    group = three(changes={"check_for_live": False, "connect_wait": 3.0})
    with_a_new_disk(group)
    group.dies("c")
    group.members["b"].does(group.machine("b").command(is_forced=True, now=group.hosts["b"].clock))
    group.reaches("b", State.ALONE)
    group.parts("a", "b")
    group.returns("a")
    group.rests(1.0)  # longer than it looks: it waits for the others
    group.heals()
    group.reaches("a", State.IN_SYNC)
    group.returns("c")
    group.until(lambda: "c" in group.machine("a").peers)
    states = set()
    for _ in range(100):
        group.rests(STEP_SECONDS)
        states.add(group.state("a"))
    assert states == {State.IN_SYNC}
