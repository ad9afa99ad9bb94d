"""What a member is told of voters, peers and its host, whatever its state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shmbroker.netbridge.election.candidate import Electorate
from shmbroker.netbridge.election.question import Answer, Copy, Grant, Renewed, Step, Verdict
from shmbroker.netbridge.member.action import LookAround
from shmbroker.netbridge.member.core import NOT_SINCE
from shmbroker.netbridge.member.draining import Phase
from shmbroker.netbridge.member.said import Dropped, GoAhead, Leave
from shmbroker.netbridge.member.standing import Past, Position, State
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
    backup,
    following,
    lines,
    pair,
    put,
    serves,
    told,
    wins,
)

# --- what its journal says ----------------------------------------------------------------------


@pytest.mark.parametrize(("is_closed", "drains"), [
    (False, False), (False, True), (True, False), (True, True),
])  # fmt: skip
def test_it_is_closed_if_its_journal_says_so_and_it_drains(is_closed: bool, drains: bool) -> None:
    driven = Driven(past=Past(NODE, is_closed=is_closed), drains=drains)
    assert driven.machine.is_closed is (is_closed and drains)


def test_who_may_be_live_by_its_journal() -> None:
    machine = backup().machine
    assert machine.is_eligible
    for changes in (
        {"copies": (Copy("b"),)}, {"node": b""}, {"is_whole": False},
    ):  # fmt: skip
        other = backup().machine
        put(other, changes)
        assert not other.is_listed, changes
        assert not other.is_eligible, changes
    machine.boot = "boot 2"
    assert machine.is_listed
    assert not machine.is_eligible
    machine.boot, machine.is_whole = "boot a", False
    assert not machine.is_eligible


def test_its_own_copy_outlives_its_boot_when_an_epoch_begins() -> None:
    driven = pair()
    driven.does(driven.machine.wants_replicated(driven.now))
    driven.confirms("b")
    driven.loses("b")
    wins(driven)
    assert driven.machine.copies == (A,)


def test_a_replica_that_has_synced_what_it_confirms_outlives_its_boot() -> None:
    driven = Driven(ack_outlives_boot=True)
    driven.follows("b")
    assert driven.machine.copies == (A, Copy("b"))


def test_who_is_stopped_may_have_begun() -> None:
    machine = Driven(NOBODY).machine
    for state, granted, is_so in (
        (State.STOPPED, Grant(2, "a", (A,)), True), (State.STOPPED, None, False),
        (State.LIVE, Grant(2, "a", (A,)), False),
    ):  # fmt: skip
        machine.state, machine.granted = state, granted
        assert machine.is_becoming_live is is_so, state


# --- voters -------------------------------------------------------------------------------------


def test_who_is_not_there_is_asked_when_it_is() -> None:
    driven = Driven(THREE)
    driven.follows("b")
    driven.does(driven.machine.voter_down("v1"))
    assert {each.voter for each in asked(driven.loses("b"))} == {"v2", "v3"}
    assert {each.voter for each in asked(driven.does(driven.machine.voter_up("v1", 10.0)))} == {
        "v1"
    }


def test_a_voter_in_doubt_is_asked_on() -> None:
    driven = pair()
    driven.loses("b")
    answers(driven, Verdict.LATER)
    assert driven.machine.candidate is not None


def test_it_has_the_patience_that_is_configured() -> None:
    driven = pair()
    driven.loses("b")
    assert driven.machine.candidate is not None
    assert driven.machine.candidate.patience == driven.machine.options.patience


@pytest.mark.parametrize("changes", [{"node": b"M" * 16}, {"epoch": 7}])
def test_an_answer_of_another_node_or_epoch_renews_nothing(changes: dict[str, Any]) -> None:
    driven = pair()
    driven.votes = False
    driven.ticks(10.2)
    before = driven.machine.lease.valid_until
    said = replace(Renewed(NODE, 1, driven.machine.version, driven.machine.lease.serial), **changes)
    driven.does(driven.machine.voter_said("w", said, driven.now))
    assert driven.machine.lease.valid_until == before


def test_no_lease_is_counted_where_nobody_can_be_asked() -> None:
    assert Driven(NOBODY).machine.lease.serial == 0


def test_who_is_not_linked_is_told_nothing() -> None:
    machine = pair().machine
    machine.tell("z", Leave())
    assert machine.done() == []


def test_other_voters_are_asked_anew_and_the_same_are_not() -> None:
    driven = Driven(THREE)
    driven.follows("b")
    driven.loses("b")
    assert not driven.does(driven.machine.voters_are(THREE, driven.now))
    fewer = Electorate(("v1", "v2"), 2)
    assert {each.voter for each in asked(driven.does(driven.machine.voters_are(fewer, 10.0)))} == {
        "v1", "v2",
    }  # fmt: skip
    assert driven.machine.voters == {"v1", "v2"}
    quiet = Driven(THREE)
    assert not asked(quiet.does(quiet.machine.voters_are(fewer, 10.0)))


# --- what replicas confirm ----------------------------------------------------------------------


def test_in_a_steady_state_a_confirm_changes_nothing_here() -> None:
    assert not pair().machine.awaits("b")
    assert pair().machine.awaits("z")


@pytest.mark.parametrize("changes", [
    {"state": State.SUSPENDED}, {"phase": Phase.DRAINING}, {"granted": Grant(2, "a", (A,))},
    {"lists": [(9, (A, B))]}, {"is_broken": True},
])  # fmt: skip
def test_what_is_under_way_may_wait_for_it(changes: dict[str, Any]) -> None:
    machine = pair().machine
    put(machine, changes)
    assert machine.awaits("b")


@pytest.mark.parametrize("changes", [{"is_announced": False}, {"has": 0}, {"is_leaving": True}])
def test_what_it_lacks_may_be_waited_for(changes: dict[str, Any]) -> None:
    machine = pair().machine
    put(machine.followers["b"], changes)
    assert machine.awaits("b")


def test_one_that_cannot_be_shipped_to_is_lost() -> None:
    driven = pair()
    done = driven.does(driven.machine.replica_failed("b", "a gap", driven.now))
    assert told(done, "b") == [Dropped("a gap")]
    driven = pair()
    assert not driven.does(driven.machine.replica_failed("c", "a gap", driven.now))
    driven.links("c")
    assert not driven.does(driven.machine.replica_failed("c", "a gap", driven.now))
    driven.machine.state = State.JOINING
    assert not driven.does(driven.machine.replica_failed("b", "a gap", driven.now))


# --- links --------------------------------------------------------------------------------------


def test_a_link_to_somebody_else_is_lost_and_it_follows_on() -> None:
    driven = following()
    driven.links("c")
    driven.loses("c")
    assert driven.machine.state is State.IN_SYNC
    driven.loses("b")
    assert driven.machine.state is State.ASKING


def test_whom_it_wanted_to_follow_is_lost() -> None:
    driven = backup()
    serves(driven)
    driven.loses("b")
    assert (driven.machine.state, driven.machine.live) == (State.JOINING, "")


def test_who_was_let_ahead_is_waited_for_unless_it_continues_alone() -> None:
    for choice, still in (("stop-confirming", {"b"}), ("continue-alone", set())):
        driven = backup(NOBODY, on_partition=choice)
        driven.links("b")
        driven.machine.let_ahead = frozenset("b")
        driven.loses("b")
        assert driven.machine.let_ahead == still


def test_it_looks_around_when_a_link_is_lost_and_it_is_not_live_nor_ends() -> None:
    for state, looks in ((State.HELD, True), (State.BEGINNING, False)):
        driven = backup(NOBODY, is_checked=True)
        driven.machine.isolation, driven.machine.state = "", state
        assert (LookAround() in driven.loses("b")) is looks


def test_it_looks_around_once_and_where_nobody_can_be_asked() -> None:
    driven = backup(NOBODY, is_checked=True)
    driven.machine.state = State.HELD
    assert LookAround() not in driven.loses("b"), "it is isolated, as far as it knows"
    driven = backup(is_checked=True)
    driven.machine.isolation, driven.machine.state = "", State.HELD
    assert LookAround() not in driven.loses("b")


# --- isolation ----------------------------------------------------------------------------------


def isolated(driven: Driven, why: str) -> list[Any]:
    return driven.does(driven.machine.isolated(why, driven.now))


def test_who_is_isolated_says_so_once_and_says_when_it_is_no_more() -> None:
    driven = Driven(NOBODY)
    assert lines(isolated(driven, "no peer")) == ["isolated"]
    assert not isolated(driven, "no peer")
    driven.machine.state = State.SUSPENDED
    isolated(driven, "no peer at all")
    assert driven.machine.goes_on_at == float("inf")
    assert lines(isolated(driven, "")) == ["not isolated"]


def test_a_doubt_that_is_over_is_no_news() -> None:
    driven = Driven(NOBODY)
    driven.machine.isolation = NOT_SINCE
    assert not lines(isolated(driven, ""))
    driven.machine.isolation = NOT_SINCE
    assert lines(isolated(driven, "no peer")) == ["isolated"]


def test_one_that_asks_nobody_is_held_while_it_is_isolated() -> None:
    driven = backup(NOBODY)
    driven.machine.state = State.ASKING
    isolated(driven, "no peer")
    assert (driven.machine.state, driven.machine.why) == (State.HELD, "no peer")
    for state, electorate in ((State.JOINING, NOBODY), (State.ASKING, THREE)):
        driven = backup(electorate)
        driven.machine.state = state
        isolated(driven, "no peer")
        assert driven.machine.state is state


def test_why_it_is_held_is_told_anew_and_it_goes_on_after_a_while() -> None:
    driven = backup(NOBODY, retry_wait=2.0)
    machine = driven.machine
    isolated(driven, "no peer")
    machine.becomes(State.HELD, "no peer")
    isolated(driven, "no peer at all")
    assert machine.why == "no peer at all"
    isolated(driven, "")
    assert machine.retry_at == 12.0
    machine.isolation = NOT_SINCE
    machine.becomes(State.HELD, NOT_SINCE)
    isolated(driven, "")
    assert machine.retry_at == 10.0, "it was a doubt only"


def test_one_that_is_held_for_another_reason_goes_on_as_it_was() -> None:
    driven = backup(NOBODY)
    machine = driven.machine
    machine.isolation = "no peer"
    machine.becomes(State.HELD, "waits for b")
    machine.retry_at = 50.0
    isolated(driven, "")
    assert machine.retry_at == 50.0
    isolated(driven, "no peer")
    assert machine.why == "waits for b"


# --- its end, and two that were forced ----------------------------------------------------------


def test_one_that_has_ended_does_nothing_more() -> None:
    driven = pair()
    driven.machine.state, driven.machine.retry_at = State.STOPPED, 11.0
    assert driven.machine.deadline == float("inf")
    assert not driven.ticks(99.0)
    assert driven.machine.retry_at == 11.0
    driven.machine.leave = None  # type: ignore[method-assign, assignment]
    assert not driven.does(driven.machine.stop(driven.now))


def test_one_that_asks_looks_for_a_live_at_each_tick() -> None:
    driven = backup()
    driven.ticks(20.0)
    assert driven.machine.state is State.ASKING
    driven.machine.links.add("c")
    last = Position(2, "c", number_of(2, 1), 0)
    hello = replace(driven.machine.hello, serves=True, epoch=2, last=last)
    driven.machine.peers["c"] = hello
    driven.ticks(20.1)
    assert driven.machine.live == "c"
    driven = backup()
    driven.machine.links.add("c")
    driven.machine.state = State.WAITING
    driven.machine.peers["c"] = hello
    driven.machine.look_until = float("inf")
    driven.ticks(10.1)
    assert driven.machine.live == "", "it looks when it is to try again"


def test_of_two_that_were_forced_one_yields() -> None:
    driven = Driven(NOBODY)
    driven.machine.state = State.CONFLICT
    claims = driven.links("b", claim=3, epoch=9, last=Position(9, "b", number_of(9, 1), 0))
    assert GoAhead(3) not in told(claims), "it hears nobody"
    driven.does(driven.machine.yields(driven.now))
    assert driven.machine.state is State.FENCED
    driven = Driven(NOBODY)
    driven.does(driven.machine.yields(driven.now))
    assert driven.machine.state is State.ALONE


def test_a_late_answer_to_a_vote_that_is_over() -> None:
    driven = pair()
    said = Answer(NODE, Step.WOULD, 1, Verdict.YES)
    assert not driven.does(driven.machine.voter_said("w", said, driven.now))
