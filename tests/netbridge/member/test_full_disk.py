"""The disk of a live is full, and nobody can be asked."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.member.action import Tell
from shmbroker.netbridge.member.said import Leave, Offer
from shmbroker.netbridge.member.standing import State
from shmbroker.netbridge.simulation.replication import member
from tests.netbridge.member.group import LONG, Group, pair


def filled(name: str, group: Group, seconds: float = LONG) -> None:
    """Its disk takes no frames, as one that is full."""
    group.disks[name].takes_frames = False
    group.disks[name].fails_until = group.world.now + seconds


def test_disk_of_the_live_is_full_so_it_hands_over_without_a_record_of_that() -> None:
    """Nobody can be asked, and the record that it would write has no room."""
    group = pair(voters=0, fails_back=False)
    filled("a", group)
    began = group.world.now
    group.write("a")
    group.until(lambda: group.serving == ["b"])
    assert group.world.now < began + group.machine("b").options.handover_timeout
    group.reaches("a", State.IN_SYNC)
    assert group.watch.begun == {1: "a", 2: "b"}


def test_who_handed_over_without_a_record_does_not_begin_that_epoch_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is preferred, its journal does not say so, and its disk has room again."""
    monkeypatch.setattr(member, "PROMOTE_SECONDS", (5.0, 5.0))
    group = pair(voters=0, fails_back=False, has_command=True)
    filled("a", group, seconds=0.5)
    group.write("a")
    group.reaches("b", State.PROMOTING)
    group.until(lambda: "a: ends" in group.lines())
    assert not group.logs["a"].past("a", group.machine("b").node).handed_to
    group.reaches("a", State.HELD)
    group.until(lambda: group.serving == ["b"])
    group.reaches("a", State.IN_SYNC)
    assert group.watch.begun == {1: "a", 2: "b"}


@pytest.mark.parametrize("is_asked", [False, True])
def test_disk_of_the_live_fills_while_it_hands_over(is_asked: bool) -> None:
    """Before its backup has answered, and while the record of that waits for room."""
    group = pair(voters=0, fails_back=False)
    live, clock = group.machine("a"), group.hosts["a"].clock
    if is_asked:
        filled("a", group)
    group.members["a"].does(live.hands_over("b", clock))
    if not is_asked:
        group.members["a"].does(live.cannot_write(clock))
        filled("a", group)
    group.until(lambda: group.serving == ["b"], seconds=live.options.handover_timeout)
    group.reaches("a", State.IN_SYNC)
    assert group.watch.begun == {1: "a", 2: "b"}


def test_disk_of_the_live_fills_while_it_hands_over_and_its_backup_leaves() -> None:
    group = pair(voters=0, fails_back=False)
    live, clock = group.machine("a"), group.hosts["a"].clock
    live.hands_over("b", clock)
    live.cannot_write(clock)
    assert live.state is State.HANDING_OVER
    live.heard("b", Leave(), clock)
    assert (live.state, live.why) == (State.SUSPENDED, "it cannot write")
    live.can_write(clock)
    assert live.state is State.LIVE


def test_disk_of_the_live_fills_while_it_hands_over_to_one_that_does_not_answer() -> None:
    """It offers it again."""
    group = pair(voters=0, fails_back=False)
    live, clock = group.machine("a"), group.hosts["a"].clock
    live.hands_over("b", clock)
    live.cannot_write(clock)
    offered = live.tick(clock + live.options.handover_timeout)
    assert Tell("b", Offer()) in offered
    assert live.state is State.HANDING_OVER


def test_who_serves_again_may_write_as_its_new_journal_says() -> None:
    """It was full when somebody else took over: nobody tells a journal that is over of room."""
    group = pair(fails_back=False)
    live, clock = group.machine("a"), group.hosts["a"].clock
    group.parts("a", "b", *group.names_of_voters)
    group.reaches("b", State.ALONE)
    live.cannot_write(clock)
    group.heals()
    group.reaches("a", State.IN_SYNC)
    group.dies("b", power=True)
    group.reaches("a", State.ALONE)
    group.returns("b")
    group.reaches("b", State.IN_SYNC)
    group.rests()
    assert group.serving == ["a"]
