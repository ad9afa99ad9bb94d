"""Who follows a live, and when it counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shmbroker.netbridge.election.question import Copy, Grant, Renewed, Step
from shmbroker.netbridge.member.action import Ship
from shmbroker.netbridge.member.said import Hello, InSync, Joined, Leave, NotJoined
from shmbroker.netbridge.member.standing import Copies, Position, State
from shmbroker.netbridge.member.written import number_of
from tests.netbridge.member.driven import (
    NOBODY,
    NODE,
    THREE,
    A,
    B,
    Driven,
    answers,
    asked,
    lines,
    pair,
    put,
    three,
    told,
    written,
)

# --- joining -----------------------------------------------------------------------------------


def test_a_backup_whose_last_frame_is_here_gets_the_tail_and_else_everything() -> None:
    cases: list[tuple[dict[str, object], bool]] = [
        ({}, False), ({"is_whole": False}, True), ({"node": b""}, True),
    ]  # fmt: skip
    for changes, is_all in cases:
        driven = Driven()
        driven.links("b")
        done = driven.joins("b", **changes)
        assert Ship("b", is_all, 1) in done
        assert told(done, "b") == [Joined(1, is_all, 1)]
    driven = Driven()
    driven.has_frame = False
    driven.links("b")
    assert Ship("b", True, 1) in driven.joins("b")


@pytest.mark.parametrize(("changes", "reason"), [
    ({"node": b"M" * 16}, "node"),
    ({"last": Position(5, "c", number_of(5, 1), 0)}, "stale"),
])  # fmt: skip
def test_who_is_of_another_node_or_has_a_higher_epoch_is_refused(
    changes: dict[str, object], reason: str
) -> None:
    driven = Driven()
    driven.links("b")
    assert NotJoined(reason, 1) in told(driven.joins("b", **changes), "b")
    assert "b" not in driven.machine.followers


def test_a_higher_epoch_in_a_journal_of_no_node_says_nothing() -> None:
    driven = Driven()
    driven.links("b")
    driven.joins("b", node=b"", last=Position(5, "c", number_of(5, 1), 0))
    assert driven.machine.state is State.ALONE


def test_the_epoch_that_begins_here_is_no_higher_one() -> None:
    for epoch, holder, is_over in ((2, "a", False), (2, "b", True), (3, "a", True)):
        driven = pair(NOBODY)
        driven.machine.granted = Grant(2, "a", (A,))
        last = Position(epoch, holder, number_of(epoch, 1), 0)
        driven.hears("b", Hello(NODE, last, False, epoch))
        assert (driven.machine.state is not State.LIVE) is is_over, (epoch, holder)


def test_nobody_joins_while_it_hands_over_or_does_not_serve() -> None:
    driven = pair()
    driven.does(driven.machine.hands_over("b", driven.now))
    driven.links("c")
    assert told(driven.joins("c"), "c") == [NotJoined("later", 1)]
    driven = Driven()
    driven.machine.state = State.BEGINNING
    driven.links("b")
    assert told(driven.joins("b"), "b") == [NotJoined("later", 1)]


def test_there_is_room_for_so_many_and_the_first_in_rank_comes_first() -> None:
    driven = Driven(members=("a", "b", "c"), retry_wait=2.0)
    driven.follows("b")
    driven.links("c")
    full = NotJoined("already-replicating", 1)
    assert told(driven.joins("c"), "c") == [full]
    driven.hears("b", Leave())
    assert driven.machine.counted == set()
    driven.links("d")
    assert told(driven.joins("d"), "d") == [full], "c was refused, and goes first"
    assert isinstance(told(driven.joins("c"), "c")[0], Joined)


def test_one_that_asks_no_more_is_not_waited_for() -> None:
    driven = Driven(members=("a", "b", "c"), retry_wait=2.0)
    driven.machine.asked["c"] = 5.9
    driven.links("d")
    assert isinstance(told(driven.joins("d"), "d")[0], Joined)
    driven = Driven(members=("a", "b", "c"), retry_wait=2.0)
    driven.machine.asked["c"] = 6.1
    driven.links("d")
    assert told(driven.joins("d"), "d") == [NotJoined("already-replicating", 1)]


def test_a_replica_that_counts_always_has_its_place() -> None:
    driven = pair()
    driven.machine.asked["c"] = driven.now
    driven.machine.options = replace(driven.machine.options, members=("a", "c", "b"))
    done = driven.joins("b", stream=2)
    assert isinstance(told(done, "b")[0], Joined)
    assert "level restored" not in lines(done), "it had not fallen"


def test_a_replica_that_counts_and_lost_its_data_is_let_in_when_it_counts_no_more() -> None:
    driven = pair()
    driven.has_frame = False
    done = driven.joins("b", stream=2)
    assert told(done, "b") == [NotJoined("later", 2)]
    assert not [each for each in done if isinstance(each, Ship)]
    assert driven.machine.state is State.SUSPENDED
    assert asked(done), "whether it may go on without"


def test_where_nobody_can_be_asked_it_gets_everything_at_once() -> None:
    driven = pair(NOBODY)
    driven.has_frame = False
    assert Ship("b", True, 2) in driven.joins("b", stream=2)
    assert driven.machine.state is State.LIVE


def test_a_replica_that_counts_follows_again_as_if_nothing_was() -> None:
    driven = pair()
    driven.loses("b")
    driven.links("b")
    done = driven.joins("b", stream=2)
    assert not written(done), "the list is as it was"
    assert driven.machine.state is State.LIVE
    assert "level restored" in lines(done)
    assert driven.machine.candidate is None


def test_one_that_has_left_or_whose_host_was_restarted_is_listed_anew() -> None:
    again = Copy("b", "boot 2")
    driven = pair()
    driven.loses("b")
    driven.links("b")
    assert written(driven.joins("b", boot="boot 2")) == [Copies((A, again))]
    driven = pair()
    driven.loses("b")
    driven.links("b")
    assert written(driven.joins("b", has_left=True)) == [Copies((A, B))]


def test_it_does_not_follow_again_while_a_vote_without_it_must_end() -> None:
    driven = pair()
    driven.loses("b")
    answers(driven)
    [*_, ask] = asked(driven.did)
    assert ask.question.step is Step.AT_ONCE
    driven.links("b")
    assert told(driven.joins("b"), "b") == [NotJoined("later", 1)]
    answers(driven)
    assert driven.machine.state is State.ALONE
    assert isinstance(told(driven.joins("b"), "b")[0], Joined)


def test_it_does_not_follow_again_while_an_epoch_without_it_begins() -> None:
    driven = pair()
    driven.syncs = False
    driven.loses("b")
    driven.does(driven.machine.continues(driven.now))
    driven.links("b")
    assert told(driven.joins("b"), "b") == [NotJoined("later", 1)]


def test_nor_before_its_first_record_is_written() -> None:
    driven = pair()
    driven.machine.granted = Grant(2, "a", (A,))
    assert told(driven.joins("b", stream=2), "b") == [NotJoined("later", 2)]


def test_a_vote_about_something_else_is_no_reason() -> None:
    driven = pair()
    driven.loses("b")
    answers(driven)
    driven.machine.purpose = driven.machine.purpose.KEEP
    driven.links("b")
    assert isinstance(told(driven.joins("b"), "b")[0], Joined)
    assert driven.machine.candidate is not None, "and it goes on"


def test_it_does_not_follow_again_while_it_is_taken_off_the_list() -> None:
    driven = three()
    driven.syncs = False
    driven.hears("b", Leave())
    driven.loses("b")
    driven.links("b")
    assert told(driven.joins("b"), "b") == [NotJoined("later", 1)]


def test_one_of_two_is_back_and_the_other_is_waited_for() -> None:
    driven = three()
    driven.loses("b")
    driven.loses("c")
    driven.links("b")
    driven.joins("b")
    assert driven.machine.state is State.SUSPENDED
    driven.links("c")
    driven.joins("c")
    assert driven.machine.state is State.LIVE


# --- in sync -----------------------------------------------------------------------------------


def test_a_replica_counts_when_it_has_all_and_follows_closely() -> None:
    for has_all, is_close in ((True, False), (False, True)):
        driven = Driven()
        driven.links("b")
        driven.joins("b")
        if has_all:
            driven.confirms("b")
        if is_close:
            driven.closely("b")
        assert not driven.machine.counted


def test_confirms_wait_for_it_before_it_is_listed_and_it_is_told_when_the_voters_know() -> None:
    driven = Driven(THREE, max_replicas=2)
    driven.votes = False
    driven.links("b")
    driven.joins("b")
    driven.closely("b")
    driven.confirms("b")
    machine = driven.machine
    assert machine.counted == {"b"}
    assert driven.listed == {"a", "b"}
    assert {each.member for each in machine.listed} == {"a"}
    assert not told(driven.confirms("b"), "b"), "the voters do not know"
    assert {each.member for each in machine.listed} == {"a", "b"}
    assert (machine.backups, machine.state) == ([], State.ALONE)
    serial = machine.lease.serial
    said = Renewed(NODE, 1, machine.version, serial)
    assert not told(driven.does(machine.voter_said("v1", said, driven.now)), "b")
    done = driven.does(machine.voter_said("v2", said, driven.now))
    assert told(done, "b") == [InSync(1)]
    assert (machine.backups, machine.state) == (["b"], State.LIVE)
    assert "level restored" in lines(done)


def test_the_second_one_restores_no_level() -> None:
    driven = Driven(max_replicas=2)
    driven.follows("b")
    driven.did.clear()
    driven.follows("c")
    assert "level restored" not in lines(driven.did)


def test_nobody_counts_before_the_voters_know_this_node() -> None:
    driven = Driven()
    driven.machine.lease.versions.clear()
    driven.votes = False
    driven.links("b")
    driven.joins("b")
    driven.closely("b")
    driven.confirms("b")
    assert not driven.machine.counted
    driven = Driven(NOBODY)
    driven.follows("b")
    assert driven.machine.counted == {"b"}, "nobody can be asked"


def test_nobody_is_listed_while_an_epoch_begins_or_it_is_suspended() -> None:
    for changes in ({"granted": Grant(2, "a", (A,))}, {"state": State.SUSPENDED}):
        driven = Driven(NOBODY)
        driven.links("b")
        driven.joins("b")
        driven.closely("b")
        put(driven.machine, changes)
        assert not written(driven.confirms("b"))


def test_one_that_is_leaving_is_not_listed() -> None:
    driven = Driven()
    driven.links("b")
    driven.joins("b")
    driven.machine.followers["b"].is_leaving = True
    driven.closely("b")
    driven.confirms("b")
    assert not driven.machine.counted


def test_one_that_is_on_the_list_already_is_not_listed_twice() -> None:
    driven = Driven()
    driven.links("b")
    driven.joins("b")
    driven.machine.copies = (A, B)
    driven.closely("b")
    assert not written(driven.confirms("b"))


def test_what_an_older_stream_says_does_not_count() -> None:
    driven = pair()
    driven.writes()
    driven.joins("b", stream=2)
    for what in (driven.confirms, driven.closely):
        what("b", stream=1)
    follower = driven.machine.followers["b"]
    assert (follower.has, follower.can_count) == (0, False)
    driven.confirms("nobody")
    driven.closely("nobody")


def test_a_list_holds_when_all_on_it_have_its_record_and_this_disk_too() -> None:
    driven = three()
    machine = driven.machine
    driven.syncs = False
    driven.does(machine.wants_replicated(10.0))
    lasting = Copy("a", "boot a")
    driven.confirms("b")
    driven.confirms("c")
    assert lasting not in machine.listed
    driven.catches_up()
    assert lasting in machine.listed
    driven = three()
    driven.does(driven.machine.wants_replicated(10.0))
    driven.confirms("b")
    assert lasting not in driven.machine.listed
    driven.confirms("c")
    assert lasting in driven.machine.listed


def test_a_list_that_holds_replaces_those_before_it() -> None:
    driven = three()
    machine = driven.machine
    driven.does(machine.wants_replicated(10.0))
    driven.hears("c", Leave())
    assert len(machine.lists) == 2
    driven.confirms("b")
    assert machine.listed == (Copy("a", "boot a"), B)
    assert not machine.lists
