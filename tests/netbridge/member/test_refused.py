"""A member that another one does not let in."""

from __future__ import annotations

from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.member.options import MemberOptions
from shmbroker.netbridge.member.said import Dropped, Hello
from shmbroker.netbridge.member.standing import Past, Position, State
from tests.netbridge.member.group import pair, three


def test_wrong_password_on_a_backup_and_it_is_refused() -> None:
    machine = Member(MemberOptions("b", False), Past(), lambda position: True, boot="1", life="1",
                     now=0.0)  # fmt: skip
    machine.start(0.0)
    machine.tick(1.0)
    machine.refused("a", "wrong password")
    assert machine.state is State.REFUSED
    assert machine.why == "a: wrong password"


def test_who_is_refused_by_one_that_may_have_a_node_founds_none_until_it_is_let_in() -> None:
    machine = Member(MemberOptions("a", True, ("a", "b")), Past(), lambda position: True, boot="1",
                     life="1", now=0.0)  # fmt: skip
    machine.start(0.0)
    machine.refused("b", "of another engine")
    machine.tick(100.0)
    assert machine.state is State.REFUSED
    machine.peer_up("b", 200.0)
    assert machine.state is State.STARTING
    machine.heard("b", Hello(b"", Position(), serves=False, epoch=0), 200.0)
    machine.tick(machine.deadline)
    assert machine.state is State.BEGINNING


def test_who_is_isolated_and_refused_founds_no_node() -> None:
    options = MemberOptions("a", True, ("a", "b"), is_checked=True)
    machine = Member(options, Past(), lambda position: True, boot="1", life="1", now=0.0)
    machine.start(0.0)
    machine.tick(100.0)
    assert machine.state is State.HELD
    assert machine.heeds_refusals
    machine.refused("b", "of another engine")
    machine.isolated("", 200.0)
    machine.tick(300.0)
    assert machine.state is State.REFUSED


def test_one_member_refuses_a_backup_and_its_live_does_not() -> None:
    group = three()
    process, backup = group.members["b"], group.machine("b")
    process.does(backup.heard("a", Dropped("no progress"), group.hosts["b"].clock))
    process.does(backup.refused("c", "wrong password"))
    assert backup.state is State.REFUSED
    group.reaches("b", State.IN_SYNC)


def test_who_is_refused_can_be_forced() -> None:
    group = pair(voters=0)
    group.dies("a")
    group.reaches("b", State.HELD)
    process, backup = group.members["b"], group.machine("b")
    process.does(backup.refused("a", "wrong password"))
    assert backup.state is State.REFUSED
    process.does(backup.command(is_forced=True, now=group.hosts["b"].clock))
    group.reaches("b", State.ALONE)
