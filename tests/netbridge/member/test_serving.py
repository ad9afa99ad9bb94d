"""A member that serves: its votes, its end, its disk, and others that serve."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shmbroker.netbridge.election.question import Copy, Grant, Release
from shmbroker.netbridge.member.action import End, GoOn, Hold, StopServing, StopShipping, TellVoter
from shmbroker.netbridge.member.said import Accept, Dropped, Hello, Offer, TakeOver
from shmbroker.netbridge.member.standing import SERVING, Parked, Position, State
from tests.netbridge.member.driven import (
    NOBODY,
    NODE,
    OTHER,
    SECOND,
    WITNESS,
    A,
    B,
    Driven,
    answers,
    asked,
    hands,
    lines,
    loses_the_vote,
    pair,
    put,
    refused,
    stale,
    stops,
    three,
    told,
    wins,
    written,
)

# --- votes -------------------------------------------------------------------------------------


def test_an_epoch_that_it_was_granted_begins_and_it_serves_on() -> None:
    driven = pair()
    driven.loses("b")
    wins(driven)
    assert (driven.machine.state, driven.machine.epoch) == (State.ALONE, 2)
    assert GoOn() not in driven.did, "its journal was not held"


def test_somebody_else_was_granted_it_and_it_is_live_no_more() -> None:
    driven = pair()
    driven.loses("b")
    done = refused(driven, OTHER)
    assert driven.machine.state is State.FENCED
    assert StopServing() in done
    assert driven.machine.held_by == OTHER


def test_it_had_it_already_and_begins_it() -> None:
    driven = pair()
    driven.loses("b")
    refused(driven, Grant(2, "a", (A,)))
    assert driven.machine.epoch == 2


def test_a_vote_that_is_lost_ends_it_or_makes_it_a_backup() -> None:
    for choice, state in (("shutdown", State.STOPPED), ("demote", State.JOINING)):
        driven = pair(on_lost_vote=choice)
        driven.loses("b")
        loses_the_vote(driven)
        assert driven.machine.state is state, choice


def test_a_vote_about_keeping_on_that_is_lost_changes_nothing() -> None:
    driven = pair()
    driven.now = 20.0
    stale(driven, Grant(2, "a", (A, B)), is_decided=False)
    assert asked(driven.did)
    loses_the_vote(driven)
    assert driven.machine.state is State.LIVE


def test_it_keeps_being_live_if_a_voter_has_accepted_somebody_else() -> None:
    driven = pair()
    driven.now = 20.0
    [ask] = asked(stale(driven, OTHER, is_decided=False))
    assert ask.question.grant == Grant(2, "a", (A, B))
    assert not asked(stale(driven, OTHER, is_decided=False)), "it asks already"


@pytest.mark.parametrize("changes", [
    {"granted": Grant(2, "a", (A,))}, {"state": State.HANDING_OVER},
])  # fmt: skip
def test_it_does_not_ask_while_an_epoch_begins_or_it_hands_over(changes: dict[str, Any]) -> None:
    driven = pair()
    driven.now = 20.0
    put(driven.machine, changes)
    assert not asked(stale(driven, OTHER, is_decided=False))


def test_it_does_not_ask_while_its_lease_is_valid() -> None:
    assert not asked(stale(pair(), OTHER, is_decided=False))


def test_what_is_decided_ends_it_and_what_is_old_or_its_own_does_not() -> None:
    cases = (
        (OTHER, True), (Grant(1, "c", (Copy("c"),)), True),
        (Grant(0, "c", (Copy("c"),)), False), (Grant(2, "a", (A,)), False),
    )  # fmt: skip
    for newest, is_fenced in cases:
        driven = pair()
        stale(driven, newest, is_decided=True)
        assert (driven.machine.state is State.FENCED) is is_fenced, newest


def test_one_that_serves_no_more_is_told_too_late() -> None:
    driven = pair()
    driven.now = 20.0
    driven.machine.state = State.JOINING
    assert not stale(driven, OTHER, is_decided=True)
    assert not stale(driven, OTHER, is_decided=False)


def test_a_vote_that_is_won_while_it_hands_over_for_another_purpose_is_its_own() -> None:
    driven = pair()
    driven.machine.state = State.HANDING_OVER
    driven.machine.purpose = driven.machine.purpose.KEEP
    driven.machine.won(Grant(2, "a", (A,)), driven.now)
    assert driven.machine.granted == Grant(2, "a", (A,))


def asks_again(driven: Driven) -> None:
    """Who serves no more, and is held, asks for the purpose that it had last."""
    driven.machine.becomes(State.ASKING)
    driven.machine.asks(
        driven.machine.purpose, Grant(driven.machine.epoch + 1, "a", (A,)), driven.now
    )
    driven.does(driven.machine.done())


def test_what_it_wins_when_it_serves_no_more_it_begins() -> None:
    driven = pair(handover_timeout=0.5)
    hands(driven)
    driven.hears("b", Accept())
    answers(driven)
    driven.ticks(10.5)
    assert driven.machine.state is State.JOINING, "the voters may have granted it to b"
    asks_again(driven)
    wins(driven)
    assert driven.machine.state is State.ALONE


def test_a_vote_that_it_loses_when_it_serves_no_more_ends_nothing() -> None:
    driven = pair(on_lost_vote="demote")
    driven.loses("b")
    loses_the_vote(driven)
    assert driven.machine.state is State.JOINING
    driven.machine.options = replace(driven.machine.options, on_lost_vote="shutdown")
    asks_again(driven)
    loses_the_vote(driven)
    assert driven.machine.state is State.JOINING


# --- its end -----------------------------------------------------------------------------------


def test_who_is_live_no_more_lets_go_of_all() -> None:
    driven = pair()
    driven.is_outdone()
    assert driven.machine.state is State.FENCED
    did = driven.did
    assert StopServing() in did
    assert StopShipping("b") in did
    assert TellVoter("w", Release(NODE, 1)) in did
    assert Dropped("it serves no more", serves=False) in told(did, "b")
    assert not driven.machine.lease.is_valid(driven.now)


def test_one_that_stops_and_is_fenced_has_stopped() -> None:
    driven = pair()
    stops(driven)
    driven.is_outdone()
    assert driven.machine.state is State.STOPPED
    assert End(False) in driven.did


def test_a_stop_without_a_backup_is_at_once() -> None:
    alone = pair()
    alone.loses("b")
    for driven in (Driven(), Driven(NOBODY), alone):
        assert End(False) in stops(driven)
        assert driven.machine.state is State.STOPPED


def test_a_second_stop_changes_nothing() -> None:
    driven = pair()
    stops(driven)
    assert not driven.does(driven.machine.stop(driven.now))
    assert driven.machine.state is State.HANDING_OVER


def test_a_stop_waits_for_the_epoch_that_it_was_granted() -> None:
    driven = three()
    driven.syncs = False
    driven.loses("c")
    wins(driven)
    driven.does(driven.machine.stop(driven.now))
    assert driven.machine.state is not State.HANDING_OVER
    assert driven.machine.hands_until == 70.0
    driven.syncs = True
    driven.catches_up()
    assert (driven.machine.state, driven.machine.epoch) == (State.HANDING_OVER, 2)


def test_with_no_handover_it_parks() -> None:
    driven = pair()
    stops(driven, hands_over=False)
    assert written(driven.did)[-1] == Parked()
    assert driven.machine.hand_to == ""
    driven.confirms("b")
    assert written(driven.did)[-1] == Parked()
    assert driven.machine.state is State.STOPPED


def test_a_last_record_is_written_once() -> None:
    driven = pair()
    driven.does(driven.machine.stop(driven.now, hands_over=False))
    driven.machine.is_held = driven.machine.is_drained = True  # and it is not appended yet
    assert not written(driven.confirms("b"))


# --- a disk that fails -------------------------------------------------------------------------


def fails(driven: Driven) -> list[Any]:
    return driven.does(driven.machine.cannot_write(driven.now))


def test_what_cannot_write_hands_over_if_somebody_is_in_sync() -> None:
    driven = three()
    driven.syncs = False
    driven.writes()
    driven.confirms("b")
    fails(driven)
    assert driven.machine.state is State.HANDING_OVER
    assert Offer() in told(driven.did, "b"), "it waits for no disk, and for nobody else"
    assert Hold() not in driven.confirms("c"), "it hands over already"
    driven.hears("b", Accept())
    wins(driven)
    assert driven.machine.state is State.STOPPED, "and does not follow with that disk"


def test_where_nobody_can_be_asked_it_does_so_by_word() -> None:
    driven = pair(NOBODY)
    fails(driven)
    assert TakeOver(SECOND) in told(driven.hears("b", Accept()), "b")
    assert not written(driven.did)[1:]


def test_where_somebody_was_asked_or_nobody_is_to_be_live_it_does_not() -> None:
    driven = pair()
    hands(driven)
    driven.hears("b", Accept())
    loses_the_vote(driven)
    fails(driven)
    assert driven.machine.state is State.HANDING_OVER
    driven = pair(NOBODY)
    stops(driven, hands_over=False)
    fails(driven)
    assert driven.machine.state is State.HANDING_OVER


def test_alone_it_waits_for_its_disk() -> None:
    driven = Driven()
    fails(driven)
    assert driven.machine.state is State.SUSPENDED
    driven.does(driven.machine.can_write(driven.now))
    assert driven.machine.state is State.ALONE


def test_it_goes_on_with_its_replicas_when_its_disk_works() -> None:
    driven = pair()
    driven.machine.followers["b"].is_announced = False
    fails(driven)
    assert driven.machine.state is State.SUSPENDED
    driven.does(driven.machine.can_write(driven.now))
    assert driven.machine.state is State.LIVE
    driven.loses("b")
    driven.does(driven.machine.can_write(driven.now))
    assert driven.machine.state is State.SUSPENDED, "it has lost one"
    driven = pair()
    hands(driven)
    driven.does(driven.machine.can_write(driven.now))
    assert driven.machine.state is State.HANDING_OVER


def test_a_disk_of_who_does_not_serve_is_not_its_matter() -> None:
    driven = Driven()
    driven.machine.state = State.JOINING
    assert not fails(driven)


# --- who else serves ---------------------------------------------------------------------------


def test_another_node_is_a_conflict_that_is_told() -> None:
    driven = pair()
    done = driven.hears("b", Hello(b"M" * 16, Position(9, "x", 9, 0), True, 9))
    assert lines(done) == ["conflict"]
    assert driven.machine.state is State.LIVE
    assert not driven.hears("b", Hello(b"M" * 16, Position(9, "x", 9, 0), False, 9))


def test_who_serves_an_older_epoch_hears_of_this_one() -> None:
    driven = pair()
    driven.machine.epoch = 2
    done = driven.hears("b", Hello(NODE, Position(1, "b", 1, 0), True, 1))
    assert told(done, "b") == [driven.machine.hello]
    assert not told(driven.hears("b", Hello(NODE, Position(1, "b", 1, 0), False, 1)), "b")


@pytest.mark.parametrize(("forced", "state"), [
    ((True, True), State.CONFLICT), ((True, False), State.LIVE), ((False, True), State.LIVE),
])  # fmt: skip
def test_two_serve_one_epoch(forced: tuple[bool, bool], state: State) -> None:
    driven = pair(NOBODY)
    driven.machine.is_forced = forced[0]
    driven.hears("b", Hello(NODE, Position(1, "b", 1, 0), True, 1, is_forced=forced[1]))
    assert driven.machine.state is state


def test_of_two_that_serve_one_epoch_the_first_in_rank_goes_on() -> None:
    driven = pair(NOBODY, members=("b", "a"))
    driven.hears("b", Hello(NODE, Position(1, "b", 1, 0), True, 1))
    assert driven.machine.state is State.FENCED


def test_while_an_epoch_was_granted_by_voters_the_same_one_of_another_is_about_to_end() -> None:
    for electorate, state in ((WITNESS, State.LIVE), (NOBODY, State.FENCED)):
        driven = pair(electorate, members=("b", "a"))
        driven.machine.granted = Grant(2, "a", (A,))
        driven.hears("b", Hello(NODE, Position(1, "b", 1, 0), True, 1))
        assert driven.machine.state is state
    driven = pair(members=("b", "a"))
    driven.hears("b", Hello(NODE, Position(1, "b", 1, 0), True, 1))
    assert driven.machine.state is State.FENCED


# --- time --------------------------------------------------------------------------------------


def test_what_is_due() -> None:
    driven = Driven(NOBODY)
    assert driven.machine.deadline == float("inf")
    driven = Driven(NOBODY, backup_timeout=5.0)
    assert driven.machine.deadline == 15.0
    driven.ticks(15.0)
    assert driven.machine.deadline == float("inf")
    driven = pair(NOBODY, replica_timeout=1.0)
    assert driven.machine.deadline == float("inf"), "it has all"
    driven.writes()
    assert driven.machine.deadline == 11.0
    driven.machine.followers["b"].is_leaving = True
    assert driven.machine.deadline == float("inf")


def test_it_waits_for_its_backups_until_their_time_is_over() -> None:
    driven = Driven(NOBODY, backup_timeout=5.0)
    driven.ticks(14.0)
    assert driven.machine.holds_until == 15.0
    driven.ticks(15.0)
    assert driven.machine.holds_until == 0.0


def test_where_nobody_can_be_asked_no_lease_is_renewed() -> None:
    assert not [each for each in Driven(NOBODY).ticks(20.0) if isinstance(each, TellVoter)]


def lost_while_isolated() -> Driven:
    """It reaches a peer again, and goes on at 12.0."""
    driven = pair(NOBODY, on_partition="continue-alone")
    driven.machine.isolation = "no peer"
    driven.loses("b")
    driven.machine.reaches(12.0)
    driven.machine.isolation = ""
    return driven


def test_who_is_isolated_no_more_goes_on_after_a_while() -> None:
    driven = lost_while_isolated()
    machine = driven.machine
    driven.ticks(11.9)
    assert machine.state is State.SUSPENDED
    driven.ticks(12.0)
    assert machine.state is State.ALONE
    machine.reaches(20.0)
    assert machine.goes_on_at == float("inf")


@pytest.mark.parametrize("changes", [
    {"state": State.LIVE}, {"granted": Grant(2, "a", (A,))}, {"counted": frozenset()},
])  # fmt: skip
def test_there_is_nothing_to_go_on_without(changes: dict[str, Any]) -> None:
    driven = lost_while_isolated()
    put(driven.machine, changes)
    assert not driven.ticks(12.0)


def test_one_that_gets_on_late_has_its_time_anew() -> None:
    driven = pair(replica_timeout=1.0)
    driven.writes()
    driven.writes()
    driven.now = 10.9
    driven.confirms("b", driven.machine.end - 1)
    driven.confirms("b", driven.machine.end - 2)
    assert driven.machine.followers["b"].has == driven.machine.end - 1
    assert not told(driven.ticks(11.5), "b")
    driven.confirms("b", driven.machine.end - 1)
    assert Dropped("no progress") in told(driven.ticks(11.9), "b")
    assert driven.machine.state in SERVING
