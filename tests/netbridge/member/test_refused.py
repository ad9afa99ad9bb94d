"""A member that another one does not let in."""

from __future__ import annotations

from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.member.options import MemberOptions
from shmbroker.netbridge.member.said import Dropped
from shmbroker.netbridge.member.standing import Past, State
from tests.netbridge.member.group import pair, three


def test_wrong_password_on_a_backup_and_it_is_refused() -> None:
    machine = Member(MemberOptions("b", False), Past(), lambda position: True, boot="1", life="1",
                     now=0.0)  # fmt: skip
    machine.start(0.0)
    machine.tick(1.0)
    machine.refused("a", "wrong password")
    assert machine.state is State.REFUSED
    assert machine.why == "a: wrong password"


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
