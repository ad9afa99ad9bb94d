"""Losing a member and handing over: a test for each row of the table of §3.3, and failback."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shmbroker.netbridge.election.candidate import Ask, Won
from shmbroker.netbridge.election.question import Copy, Grant
from shmbroker.netbridge.member.action import Alert, Line, Unfollow
from shmbroker.netbridge.member.core import Purpose
from shmbroker.netbridge.member.said import Closing, TakeOver
from shmbroker.netbridge.member.standing import Position, State
from shmbroker.netbridge.wire.words import Level
from tests.netbridge.member.group import LONG, Group, pair


def test_live_crashes_and_its_backup_is_granted_the_next_epoch() -> None:
    group = pair(has_command=True)
    assert group.write("a", "m1")
    group.dies("a")
    group.reaches("b", State.PROMOTING)
    group.reaches("b", State.ALONE)
    assert group.machine("b").epoch == 2
    rings = group.members["b"].rings
    assert rings is not None
    assert any("m1" in messages for messages in rings.queues.values())


def test_voters_are_asked_while_what_has_come_of_the_live_is_written() -> None:
    group = pair()
    kinds = [type(each) for each in group.machine("b").peer_down("a", group.hosts["b"].clock)]
    assert kinds.index(Ask) < kinds.index(Unfollow)


def test_live_crashes_and_the_grant_is_refused_so_its_backup_goes_back_to_joining() -> None:
    group = pair()
    group.dies("v1")
    group.dies("a")
    group.until(lambda: "b: vote lost" in group.lines())
    assert group.state("b") is State.JOINING
    assert not group.serving


@pytest.mark.parametrize(("splits", "state"), [(False, State.HELD), (True, State.ALONE)])
def test_live_crashes_and_nobody_can_be_asked(splits: bool, state: State) -> None:
    group = pair(voters=0, splits=splits)
    group.dies("a")
    group.reaches("b", state)
    group.rests()
    assert group.state("b") is state


def test_live_stops_gracefully_and_its_backup_activates_without_a_vote_of_its_own() -> None:
    group = pair()
    group.stays_down.add("a")
    group.members["a"].does(group.machine("a").stop(group.hosts["a"].clock))
    group.reaches("b", State.ALONE)
    assert group.machine("b").epoch == 2
    assert group.machine("b").attempt == 0
    assert "a: handed over b" in group.lines()


@pytest.mark.parametrize("voters", [0, 1])
def test_live_stops_gracefully_and_no_voter_answers_so_the_replicas_have_it_in_their_logs(
    voters: int,
) -> None:
    group = pair(voters=voters)
    if voters:
        group.dies("v1")
    group.stays_down.add("a")
    group.members["a"].does(group.machine("a").stop(group.hosts["a"].clock))
    group.reaches("b", State.ALONE)
    assert group.machine("b").epoch == 2
    assert group.machine("b").attempt == 0


def test_closing_is_seen_and_no_handover_so_it_is_a_crash_at_the_loss_of_the_link() -> None:
    group = pair()
    group.members["b"].does(group.machine("b").heard("a", Closing(), group.hosts["b"].clock))
    assert group.state("b") is State.IN_SYNC
    group.dies("a")
    group.reaches("b", State.ALONE)


def test_closing_is_seen_and_no_handover_so_it_is_a_crash_after_handover_timeout() -> None:
    group = pair(voters=0)
    group.members["b"].does(group.machine("b").heard("a", Closing(), group.hosts["b"].clock))
    group.hosts["a"].stands_until = group.world.now + 0.1
    group.until(lambda: "b: held" in group.lines())


def test_backup_stops_gracefully_and_the_live_goes_on_alone_without_a_question() -> None:
    group = pair()
    group.stays_down.add("b")
    group.members["b"].does(group.machine("b").stop(group.hosts["b"].clock))
    group.reaches("a", State.ALONE)
    live = group.machine("a")
    assert (live.epoch, live.attempt) == (1, 0)
    assert live.effective_level is Level.DISK
    assert "a: level fell disk" in group.lines()
    assert group.write("a")
    assert group.logs["b"].past("b", live.node).has_left


def test_backup_stops_gracefully_and_the_live_waits_until_the_voters_know() -> None:
    group = pair()
    group.dies("v1")
    group.stays_down.add("b")
    group.members["b"].does(group.machine("b").stop(group.hosts["b"].clock))
    group.rests(1.0)
    assert not group.write("a")
    group.returns("v1")
    group.reaches("a", State.ALONE)
    assert group.write("a")


def test_backup_stops_gracefully_and_never_serves_without_its_live() -> None:
    """Not even with `continue-alone`: the live has gone on without it."""
    group = pair(voters=0, splits=True)
    group.stays_down.add("b")
    group.members["b"].does(group.machine("b").stop(group.hosts["b"].clock))
    group.reaches("a", State.ALONE)
    assert group.write("a")
    group.dies("a")
    group.returns("b")
    group.rests(10.0)
    assert not group.serving
    group.returns("a")
    group.reaches("a", State.LIVE)


@pytest.mark.parametrize("voters", [1, 0])
def test_backup_stops_gracefully_and_its_live_is_gone_already_with_less(voters: int) -> None:
    """It has noted that it has left, and its live never heard of it: its copy still counts."""
    group = pair(voters=voters, fails_back=False)
    assert group.write("a", "early", Level.REPLICATED)
    group.until(lambda: group.machine("a").may_run_ahead)
    group.disks["a"].slow_until = LONG
    assert group.write("a", "is syncing", Level.REPLICATED)
    assert group.write("a", "confirmed", Level.REPLICATED)
    group.dies("a", power=True)
    group.stays_down.add("b")
    group.members["b"].does(group.machine("b").stop(group.hosts["b"].clock))
    group.rests(0.2)
    assert group.logs["b"].past("b", b"").has_left
    group.disks["a"].slow_until = 0.0
    group.returns("a")
    group.rests(2.0)
    assert not group.serving
    group.returns("b")
    group.until(lambda: group.serving == ["b"])
    rings = group.members["b"].rings
    assert rings is not None
    assert any("confirmed" in messages for messages in rings.queues.values())


def test_backup_stops_gracefully_and_its_live_runs_no_more_ahead_of_its_disk() -> None:
    """Its own copy lasts, whatever is asked for until the voters know that it is alone."""
    group = pair()
    group.dies("v1")
    group.stays_down.add("b")
    group.members["b"].does(group.machine("b").stop(group.hosts["b"].clock))
    group.until(lambda: group.machine("a").listed == (Copy("a"),))
    assert not group.write("a", "waits", Level.REPLICATED)
    assert group.machine("a").copies == (Copy("a"),)


def test_backup_stops_gracefully_while_its_live_begins_to_go_on_without_another_one() -> None:
    """The list that follows names none that the new epoch has dropped."""
    group = pair(members=3, max_replicas=2, fails_back=False)
    group.reaches("c", State.IN_SYNC)
    live = group.machine("a")
    group.until(lambda: len(live.listed) == 3)
    group.disks["a"].slow_until = LONG
    assert group.write("a", "early", Level.REPLICATED)
    group.dies("b")
    group.until(lambda: live.granted is not None)
    group.stays_down.add("c")
    group.members["c"].does(group.machine("c").stop(group.hosts["c"].clock))
    group.until(lambda: live.granted is None)
    group.reaches("a", State.ALONE)
    assert live.epoch == 2
    assert live.copies == live.listed == (Copy("a"),)
    assert group.logs["a"].past("a", live.node).copies == (Copy("a"),)


def test_backup_crashes_and_the_live_asks_before_it_goes_on_alone() -> None:
    group = pair()
    group.dies("b")
    group.reaches("a", State.ALONE)
    assert group.machine("a").epoch == 2
    assert "a: vote won epoch 2" in group.lines()
    assert group.write("a")


def test_backup_hangs_and_syncs_again_when_it_wakes() -> None:
    group = pair()
    group.hosts["b"].stands_until = group.world.now + 2.0
    began = group.world.now
    group.write("a")
    group.reaches("a", State.ALONE)
    assert group.world.now - began < 2.0
    assert "replica lost b: no progress" in group.lines()
    group.reaches("b", State.IN_SYNC)
    group.reaches("a", State.LIVE)


def test_replication_link_is_lost_and_a_majority_lets_the_live_go_on_alone() -> None:
    group = pair()
    group.parts("a", "b")
    group.reaches("a", State.ALONE)
    group.rests()
    assert group.serving == ["a"]
    assert group.state("b") is State.JOINING or group.state("b") is State.ASKING
    group.heals()
    group.reaches("b", State.IN_SYNC)


@pytest.mark.parametrize("choice", ["shutdown", "demote"])
def test_replication_link_is_lost_and_so_is_the_vote(choice: str) -> None:
    group = pair(changes={"on_lost_vote": choice})
    group.dies("v1")
    group.parts("a", "b")
    group.stays_down.add("a")
    group.until(lambda: "a: vote lost" in group.lines())
    group.rests(0.5)
    assert not group.serving
    assert group.hosts["a"].is_up == (choice == "demote")


def test_replication_link_is_lost_and_voting_is_off_so_the_live_goes_on_alone() -> None:
    group = pair(changes={"votes": False})
    group.dies("v1")
    group.parts("a", "b")
    group.reaches("a", State.ALONE)
    assert group.machine("a").attempt == 0


def test_live_cannot_write_and_hands_over() -> None:
    group = pair(fails_back=False)
    group.disks["a"].fails_until = group.world.now + 1.0
    group.write("a")
    group.until(lambda: group.serving == ["b"])
    assert "a: handed over b" in group.lines()


def test_live_cannot_write_and_hands_over_to_who_is_there_still() -> None:
    """The host of the first is gone, and nobody has noticed that yet."""
    group = Group(members=3, max_replicas=2, fails_back=False)
    group.starts()
    group.reaches("b", State.IN_SYNC)
    group.reaches("c", State.IN_SYNC)
    group.until(lambda: group.machine("a").announced == "b")
    group.dies("b", power=True)
    group.disks["a"].fails_until = group.world.now + 5.0
    group.write("a")
    group.until(lambda: group.serving == ["c"])
    assert "a: handed over c" in group.lines()
    assert "a: handed over b" not in group.lines()


def test_live_cannot_write_and_its_backup_is_gone_so_it_goes_on_when_it_can() -> None:
    group = pair()
    group.dies("b", power=True)
    group.disks["a"].fails_until = group.world.now + 0.3
    group.write("a")
    group.reaches("a", State.ALONE)
    assert "handed over" not in group.lines()
    assert group.write("a")


def test_live_cannot_sync_that_it_hands_over_and_its_backup_has_heard_so() -> None:
    """Nobody can be asked: its backup is told, and the live does not serve again."""
    group = pair(voters=0, fails_back=False)
    group.disks["a"].fails_until = group.world.now + 30.0
    group.write("a")
    group.disks["b"].fails_until = group.world.now + 3.0  # it serves when it can write that
    group.until(lambda: group.serving == ["b"])
    group.rests()
    assert group.serving == ["b"]
    assert group.members["a"].follows == "b"


def test_a_host_loses_power_before_it_syncs_what_it_was_handed_over() -> None:
    """Its journal ends in the epoch before: it gives the role back, however its own list calls it.

    Its disk has failed since it was live itself, so it has followed in memory only.
    """
    group = pair(voters=3, fails_back=False)
    group.disks["a"].fails_until = LONG
    group.write("a")
    group.until(lambda: group.serving == ["b"])
    group.reaches("a", State.IN_SYNC)
    assert group.write("b", "confirmed")
    group.members["b"].does(group.machine("b").hands_over("a", group.hosts["b"].clock))
    group.until(lambda: "b: vote won epoch 3" in group.lines())
    group.dies("a", power=True)
    group.disks["a"].fails_until = 0.0
    group.returns("a")
    group.reaches("a", State.HELD)
    late = TakeOver(Grant(3, "a", (Copy("a", "the boot before"),)))
    group.machine("a").heard("b", late, group.hosts["a"].clock)
    assert group.state("a") is State.HELD, "that was granted to the boot before"
    group.until(lambda: bool(group.serving))
    rings = group.members[group.serving[0]].rings
    assert rings is not None
    assert any("confirmed" in messages for messages in rings.queues.values())


def test_who_is_granted_the_same_at_each_retry_says_so_once() -> None:
    machine = pair().machine("b")
    of_another_boot = Won(Grant(2, "b", (Copy("b", "the boot before"),)))
    for _ in range(2):
        machine._vote([of_another_boot], now=0.0)
    won = [each for each in machine.done() if each == Line(Alert.VOTE_WON, "epoch 2")]
    assert len(won) == 1


def test_who_stops_before_it_hears_that_it_has_its_role_back_serves_when_it_returns() -> None:
    """The voters know that it has epoch 3, and its own journal ends in epoch 1."""
    group = pair(voters=3, fails_back=False)
    group.disks["b"].slow_until = LONG
    assert group.write("a", "is syncing", Level.REPLICATED)
    assert group.write("a", "lost with b", Level.REPLICATED)
    group.members["a"].does(group.machine("a").hands_over("b", group.hosts["a"].clock))
    group.until(lambda: "a: handed over b" in group.lines())
    group.ends(group.hosts["b"], loses_power=True)
    group.disks["b"].slow_until = 0.0
    group.until(lambda: "b" in group.members and group.machine("b").purpose is Purpose.HAND_BACK)
    group.parts("a", "b")
    group.until(lambda: "b: vote won epoch 3" in group.lines())
    group.dies("a")
    group.heals()
    group.returns("a")
    group.reaches("a", State.LIVE)
    assert group.machine("a").epoch == 3


def test_live_that_wakes_meets_a_higher_epoch_and_confirms_nothing() -> None:
    group = pair()
    group.hosts["a"].stands_until = group.world.now + 3.0
    group.reaches("b", State.ALONE)
    assert group.state("a") is State.LIVE  # it does not know yet
    group.until(lambda: "a: fenced" in group.lines())
    assert group.serving == ["b"]
    assert not group.members["a"].confirmed(None)
    group.reaches("a", State.IN_SYNC)


def test_live_wakes_while_its_backup_begins_the_epoch_that_it_was_granted() -> None:
    group = pair()
    group.disks["b"].slow_until = LONG
    former = group.machine("a").hello
    group.dies("a")
    group.reaches("b", State.BEGINNING)
    backup, now = group.machine("b"), group.hosts["b"].clock
    group.members["b"].does(backup.heard("a", former, now))
    assert backup.state is State.BEGINNING
    group.reaches("b", State.ALONE)
    assert backup.epoch == 2
    assert "conflict" not in group.lines()


def test_live_dies_during_a_sync_and_its_backup_stays_passive() -> None:
    group = Group()
    group.starts()
    group.reaches("b", State.SYNCING)
    group.dies("a")
    group.until(lambda: "b: not in sync" in group.lines())
    group.rests()
    assert not group.serving
    assert "not in sync with a" in group.lines()


def test_acting_live_crashes_and_nobody_is_in_sync_so_the_old_member_is_held() -> None:
    group = pair()
    group.dies("a")
    group.reaches("b", State.ALONE)
    group.write("b")
    group.dies("b")
    group.returns("a")
    group.reaches("a", State.HELD)
    group.rests()
    assert not group.serving
    group.returns("b")
    group.reaches("b", State.ALONE, State.LIVE)


def test_of_several_that_meet_nobody_decides_by_what_another_one_had_before_it_followed() -> None:
    """Each knows the other one's place of then: both would be the newest."""
    group = pair(members=3, voters=0, max_replicas=2)
    group.reaches("c", State.IN_SYNC)
    assert group.write("a", "early", Level.REPLICATED)
    group.until(lambda: group.machine("a").may_run_ahead)
    assert all(group.machine(one).peers[other].is_following for one, other in ("bc", "cb"))
    group.disks["a"].slow_until = LONG
    assert all(group.write("a", f"syncs {each}", Level.REPLICATED) for each in range(9))
    group.dies("a", power=True)
    group.disks["a"].slow_until = 0.0
    assert group.logs["a"].last.number < group.logs["b"].last.number
    group.reaches("b", State.HELD)
    group.reaches("c", State.HELD)
    group.rests(0.2)
    ours, theirs = group.machine("c"), group.machine("b").hello
    group.members["c"].does(ours.heard("b", replace(theirs, last=Position(), is_following=True), 1))
    group.returns("a")
    group.until(lambda: "a" in ours.peers)
    assert group.state("c") is State.HELD
    group.until(lambda: group.serving == ["b"])


def test_with_several_backups_the_one_that_is_in_sync_and_preferred_goes_first() -> None:
    group = pair(members=3, max_replicas=2)
    group.reaches("c", State.IN_SYNC)
    assert group.machine("a").announced == "b"
    group.dies("a")
    group.until(lambda: group.serving == ["b"])
    group.reaches("c", State.IN_SYNC)
    assert group.machine("b").announced == "c"


def test_one_backup_is_followed_and_the_other_waits() -> None:
    group = Group(members=3, max_replicas=1)
    group.starts()
    states = State.IN_SYNC, State.WAITING
    group.until(lambda: {group.state(each) for each in ("b", "c")} == {*states})
    first, second = ("b", "c") if group.state("b") is State.IN_SYNC else ("c", "b")
    assert "already-replicating" in group.machine(second).why
    group.dies(first)
    group.reaches(second, State.IN_SYNC)


# --- §3.4 ---------------------------------------------------------------------------------------


def test_the_preferred_member_returns_and_gets_its_role_back() -> None:
    group = pair()
    group.dies("a")
    group.reaches("b", State.ALONE)
    assert group.write("b", "meanwhile")
    group.returns("a")
    group.until(lambda: group.serving == ["a"])
    assert group.machine("a").epoch == 3
    rings = group.members["a"].rings
    assert rings is not None
    assert any("meanwhile" in messages for messages in rings.queues.values())
    group.reaches("b", State.IN_SYNC)


def test_no_failback_if_the_acting_live_does_not_allow_it() -> None:
    group = pair()
    group.of_one["b"] = {"allow_failback": False}
    group.dies("b")
    group.reaches("a", State.ALONE)
    group.returns("b")
    group.reaches("b", State.IN_SYNC)
    group.dies("a")
    group.reaches("b", State.ALONE)
    group.returns("a")
    group.until(lambda: "a: failback refused allow-failback is false" in group.lines())
    assert group.serving == ["b"]


def test_no_failback_while_another_backup_is_in_sync() -> None:
    group = pair(members=3, max_replicas=2)
    group.reaches("c", State.IN_SYNC)
    group.dies("a")
    group.until(lambda: group.serving == ["b"])
    group.reaches("c", State.IN_SYNC)
    group.returns("a")
    group.until(lambda: "failback refused another backup is in sync" in group.lines())
    assert group.serving == ["b"]


def test_handing_over_by_command() -> None:
    group = pair(fails_back=False)
    group.members["a"].does(group.machine("a").hands_over("b", group.hosts["a"].clock))
    group.until(lambda: group.serving == ["b"])
    group.reaches("a", State.IN_SYNC)


def test_a_replica_that_confirms_cannot_wait_for_yet_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has every frame that the machine knows of, and more may be written than it has."""
    group = Group()
    told: list[tuple[str, int, float]] = []
    group.starts("a", "v1")
    group.reaches("a", State.ALONE)
    live = group.machine("a")
    can_count = live.replica_can_count
    monkeypatch.setattr(live, "replica_can_count", lambda *given: told.append(given) or [])
    group.returns("b")
    group.dials_now()
    group.until(lambda: bool(told))
    assert group.write("a")
    group.rests()
    assert not live.counted
    assert group.state("b") is State.SYNCING
    member, stream, at = told[-1]
    group.members["a"].does(can_count(member, stream - 1, at))
    assert not live.counted, "that was an older stream"
    group.members["a"].does(can_count(*told[-1]))
    group.reaches("b", State.IN_SYNC)


def test_of_a_replica_that_has_all_records_no_frame_is_waited_for() -> None:
    """Each frame is confirmed: a live that looked at all that it is each time would do little
    else."""
    group = pair()
    group.rests()
    live = group.machine("a")
    assert not live.awaits("b")
    live.wrote(replace(live.last, number=live.last.number + 1), None, 0.0)
    assert live.awaits("b")
