"""A member that looks for a live and follows it, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker.netbridge.election.question import Copy, Grant
from shmbroker.netbridge.member.action import Follow
from shmbroker.netbridge.member.said import AskBack, InSync, Joined, NotJoined
from shmbroker.netbridge.member.standing import Began, Copies, Past, Position, State
from shmbroker.netbridge.member.written import number_of
from tests.netbridge.member.driven import (
    NODE,
    A,
    Driven,
    answers,
    backup,
    following,
    joins,
    lines,
    put,
    serves,
    told,
)


def test_it_joins_whoever_serves_its_node() -> None:
    driven = backup()
    [join] = joins(serves(driven))
    assert (join.node, join.last, join.is_whole, join.stream) == (
        NODE, driven.machine.past.last, True, 1
    )  # fmt: skip
    assert not joins(serves(driven, "c"), "c"), "it has one"


@pytest.mark.parametrize("hello", [{"node": b"M" * 16}, {"epoch": 0}, {"serves": False}])
def test_it_joins_nobody_of_another_node_of_an_older_epoch_or_that_does_not_serve(
    hello: dict[str, Any],
) -> None:
    driven = backup()
    driven.machine.state = State.JOINING
    assert not joins(serves(driven, **hello))


def test_it_joins_nobody_while_it_stops_or_begins_itself() -> None:
    for changes in ({"is_stopping": True}, {"state": State.PROMOTING}):
        driven = backup()
        driven.machine.state = State.JOINING
        put(driven.machine, changes)
        assert not joins(serves(driven))


def asking() -> Driven:
    driven = backup()
    driven.ticks(20.0)
    assert driven.machine.state is State.ASKING
    return driven


def test_it_asks_no_more_when_it_meets_a_live() -> None:
    driven = asking()
    assert joins(serves(driven, epoch=2))
    assert driven.machine.candidate is None
    assert driven.machine.state is State.JOINING


def test_what_voters_may_have_granted_it_comes_first() -> None:
    driven = asking()
    answers(driven)
    assert not joins(serves(driven, epoch=2))
    assert driven.machine.candidate is not None


def test_one_that_is_held_joins_and_says_so_if_its_journal_is_new() -> None:
    driven = backup()
    driven.machine.state = State.HELD
    assert joins(serves(driven))
    assert driven.machine.state is State.HELD
    driven = Driven(past=Past())
    driven.machine.state = State.HELD
    assert joins(serves(driven))
    assert driven.machine.state is State.JOINING
    driven = Driven(past=Past())
    driven.machine.state = State.WAITING
    assert joins(serves(driven))
    assert driven.machine.state is State.WAITING


def test_it_follows_from_where_it_ends() -> None:
    driven = backup()
    serves(driven)
    copies = driven.machine.copies
    done = driven.hears("b", Joined(1, False, 1))
    assert Follow("b", 1, False, 1) in done
    assert (driven.machine.state, driven.machine.copies) == (State.SYNCING, copies)
    assert driven.machine.is_whole


def test_it_gets_everything_and_is_not_whole_before_that_is_there() -> None:
    driven = backup()
    serves(driven)
    driven.hears("b", Joined(1, True, 1))
    machine = driven.machine
    assert (machine.is_whole, machine.copies) == (False, ())
    machine.copied(Position(1, "b", number_of(1, 9), 0))
    assert machine.is_whole


def test_a_new_member_is_of_the_node_of_its_live_and_another_one_stays_what_it_is() -> None:
    driven = Driven(past=Past(), is_preferred=False)
    serves(driven)
    driven.hears("b", Joined(1, True, 1))
    assert driven.machine.node == NODE
    driven = backup()
    serves(driven)
    driven.machine.peers.clear()
    driven.hears("b", Joined(1, False, 1))
    assert driven.machine.node == NODE


@pytest.mark.parametrize("answer", [Joined(1, False, 7), NotJoined("node", 7)])
def test_an_answer_to_an_older_request_is_none(answer: Joined | NotJoined) -> None:
    driven = backup()
    serves(driven)
    assert not driven.hears("b", answer)
    assert driven.machine.state is State.JOINING


@pytest.mark.parametrize("answer", [Joined(1, True, 1), NotJoined("node", 1)])
def test_an_answer_that_comes_twice_is_none(answer: Joined | NotJoined) -> None:
    driven = following()
    assert not driven.hears("b", answer)
    assert driven.machine.state is State.IN_SYNC


@pytest.mark.parametrize(("reason", "state"), [
    ("already-replicating", State.WAITING), ("node", State.REFUSED), ("later", State.JOINING),
])  # fmt: skip
def test_why_it_may_not_follow(reason: str, state: State) -> None:
    driven = backup()
    serves(driven)
    driven.hears("b", NotJoined(reason, 1))
    assert driven.machine.state is state


def test_it_is_in_sync_when_its_live_says_so_and_tells_once() -> None:
    driven = following()
    assert lines(driven.did).count("in sync") == 1
    driven.hears("b", InSync(1))
    driven.hears("c", InSync(1))
    assert lines(driven.did).count("in sync") == 1


@pytest.mark.parametrize(("options", "asks"), [
    ({}, True), ({"is_preferred": False}, False), ({"check_for_live": False}, False),
    ({"allow_failback": False}, False),
])  # fmt: skip
def test_the_preferred_one_asks_for_its_role_once(options: dict[str, Any], asks: bool) -> None:
    driven = following(**({"is_preferred": True, "check_for_live": True} | options))
    driven.hears("b", InSync(1))
    assert told(driven.did, "b").count(AskBack()) == asks


def test_what_frames_of_the_live_say() -> None:
    driven = following()
    machine = driven.machine
    machine.has_left = machine.has_drained = machine.is_closed = machine.is_parked = True
    machine.handed_to = "a"
    last = Position(2, "b", number_of(2, 1), 0)
    machine.took(last, (Began(2, "b", (Copy("b"),)),))
    assert (machine.last, machine.epoch, machine.copies) == (last, 2, (Copy("b"),))
    assert machine.has_left, "it is not on the list"
    assert not machine.has_drained
    assert not machine.is_closed
    assert (machine.handed_to, machine.is_parked) == ("", False)
    machine.took(last, (Copies((Copy("b"), A)),))
    assert machine.copies == (Copy("b"), A)
    assert not machine.has_left
    machine.has_drained = True
    machine.took(last, (Copies((Copy("b"), A)),))
    assert machine.has_drained, "no epoch begins with that"
    machine.took(last, (Began(3, "a", (A,)),))
    assert machine.has_drained, "its own"


def test_a_grant_is_for_this_boot_of_its_host_as_its_copy_is() -> None:
    driven = backup()
    assert driven.machine.alone_grant == Grant(2, "a", (Copy("a", "boot a"),))
