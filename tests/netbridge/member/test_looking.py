"""A member that looks whether it may serve, word by word: at a start, and after the loss of its
live."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shmbroker.netbridge.election.candidate import Electorate
from shmbroker.netbridge.election.question import Copy, Grant
from shmbroker.netbridge.member.action import (
    Action,
    Begin,
    Promote,
    Unfollow,
)
from shmbroker.netbridge.member.core import Purpose
from shmbroker.netbridge.member.said import Hello
from shmbroker.netbridge.member.standing import Past, Position, State
from shmbroker.netbridge.member.written import number_of
from tests.netbridge.member.driven import (
    FORMER,
    NEWER,
    NOBODY,
    NODE,
    SAME,
    WITNESS,
    A,
    Driven,
    asked,
    backup,
    following,
    held,
    lines,
    meets,
    put,
)

WITH_B = (Copy("b"), Copy("a", "boot a"))
OURS = Position(1, "a", number_of(1, 5), 0)


def begins(actions: list[Action]) -> list[Grant]:
    return [Grant(each.epoch, "a", each.copies) for each in actions if isinstance(each, Begin)]


# --- starting -----------------------------------------------------------------------------------


def started(
    electorate: Electorate | None = WITNESS, options: dict[str, Any] | None = None, **past: Any
) -> Driven:
    """With this journal, and it has met nobody that serves."""
    found = Past(**({"node": NODE, "last": SAME, "copies": WITH_B} | past))
    driven = Driven(electorate, found, **({"is_preferred": False} | (options or {})))
    driven.ticks(10.0)
    return driven


def test_a_journal_that_has_all_asks_whether_it_may_serve() -> None:
    driven = started()
    assert driven.machine.state is State.ASKING
    assert driven.machine.purpose is Purpose.START
    assert [each.question.grant.epoch for each in asked(driven.did)] == [2]


@pytest.mark.parametrize("past", [
    {"copies": (Copy("b"), Copy("c"))}, {"has_left": True}, {"handed_to": "c"},
])  # fmt: skip
def test_one_that_lacks_something_looks_for_a_live(past: dict[str, Any]) -> None:
    driven = started(**past)
    assert driven.machine.state is State.JOINING
    assert driven.machine.retry_at == 10.0 + driven.machine.options.retry_wait


def test_whom_it_was_handed_to_goes_first() -> None:
    assert begins(started(NOBODY, handed_to="a").did) == [Grant(2, "a", (A,))]


def test_one_that_was_parked_by_another_waits_for_it() -> None:
    driven = started(NOBODY, is_parked=True)
    assert driven.machine.state is State.PARKED
    assert driven.machine.why == "b was stopped with --no-handover"


def test_who_has_parked_it_serves_again() -> None:
    driven = started(NOBODY, last=OURS, is_parked=True, all_know=True)
    assert begins(driven.did) == [Grant(2, "a", (A,))]
    driven = started(last=OURS, is_parked=True, all_know=True)
    assert driven.machine.purpose is Purpose.START
    assert asked(driven.did)


def test_who_was_live_with_others_waits_for_them_where_nobody_can_be_asked() -> None:
    driven = started(NOBODY, last=OURS)
    assert driven.machine.state is State.HELD
    assert not begins(driven.did)


def test_one_whose_host_was_restarted_is_held_and_asks_at_once_for_nothing() -> None:
    driven = started(copies=FORMER)
    assert driven.machine.state is State.HELD
    assert driven.machine.why == "its host was restarted; waits for b (epoch 1)"
    assert not asked(driven.did)


def test_one_that_was_live_alone_and_whose_host_was_restarted_does_not_go_on_in_its_epoch() -> None:
    driven = started(last=OURS, copies=(Copy("a", "former boot"),))
    assert not begins(driven.did)
    assert [each.question.grant.epoch for each in asked(driven.did)] == [2]


@pytest.mark.parametrize(("epoch", "state"), [(2, State.HELD), (1, State.ASKING)])
def test_who_hears_of_a_newer_epoch_is_held(epoch: int, state: State) -> None:
    driven = Driven(WITNESS, Past(NODE, SAME, WITH_B), is_preferred=False)
    driven.links("b", epoch=epoch, last=replace(SAME, epoch=epoch))
    driven.ticks(10.0)
    assert driven.machine.state is state


def test_who_was_live_alone_goes_on_in_its_epoch() -> None:
    assert begins(started(last=OURS, copies=(A,)).did) == [Grant(1, "a", (A,))]


@pytest.mark.parametrize("past", [
    {"last": SAME, "copies": (A,)}, {"last": OURS, "copies": (A,), "has_drained": True},
])  # fmt: skip
def test_who_was_not_or_has_given_all_away_begins_the_next_one(past: dict[str, Any]) -> None:
    driven = started(**past)
    assert driven.machine.purpose is Purpose.START
    assert [each.question.grant.epoch for each in asked(driven.did)] == [2]
    alone = started(NOBODY, **past)
    assert begins(alone.did)[0].epoch == 2
    assert "held" not in lines(alone.did) or past["last"] is SAME


def test_its_command_is_asked_only_where_it_was_not_live() -> None:
    options = {"has_command": True}
    assert Promote() in started(NOBODY, options, copies=(A,)).did
    again = started(NOBODY, options, last=OURS, copies=(A,), has_drained=True)
    assert Promote() not in again.did


def test_who_does_not_activate_waits_for_a_person() -> None:
    driven = started(options={"activates": False})
    assert driven.machine.state is State.HELD
    assert driven.machine.why == "waits for shmbroker ha promote"


def test_who_goes_on_alone_begins_where_nobody_can_be_asked() -> None:
    driven = started(NOBODY, {"on_partition": "continue-alone"})
    assert begins(driven.did)
    assert not begins(started(NOBODY).did)


# --- in doubt -----------------------------------------------------------------------------------


def test_one_that_has_left_says_so_and_one_whose_host_was_restarted() -> None:
    driven = backup()
    machine = driven.machine
    machine._hold_in_doubt(10.0)
    assert machine.why == "waits for b (epoch 1)"
    machine.copies = FORMER
    machine._hold_in_doubt(10.0)
    assert machine.why == "its host was restarted; waits for b (epoch 1)"
    machine.has_left = True
    machine._hold_in_doubt(10.0)
    assert machine.why == "it has left in good order; waits for b (epoch 1)"
    assert machine.retry_at == 10.0 + machine.options.retry_wait


def restarted(electorate: Electorate | None = WITNESS, **options: Any) -> Driven:
    """It is held, because its host was."""
    driven = backup(electorate, **options)
    driven.machine.copies = FORMER
    driven.machine._hold_in_doubt(driven.now)
    driven.machine.done()
    return driven


def test_all_are_met_and_it_asks_so_that_nobody_else_is_live() -> None:
    driven = restarted()
    done = meets(driven)
    assert driven.machine.purpose is Purpose.START
    [ask, *_] = asked(done)
    assert ask.question.has_met_all


def test_all_are_met_and_nobody_can_be_asked_so_it_claims() -> None:
    driven = restarted(NOBODY)
    meets(driven)
    assert driven.machine.claim == 1


def test_it_asks_nothing_where_not_all_are_met() -> None:
    driven = restarted()
    assert not asked(meets(driven, last=NEWER))
    assert driven.machine.state is State.HELD


def test_who_has_all_waits_for_its_next_question() -> None:
    driven = backup()
    driven.machine.becomes(State.HELD)
    assert not asked(meets(driven))


def test_what_it_has_met_meanwhile_is_said_in_its_next_attempt() -> None:
    driven = restarted()
    machine = driven.machine
    machine._ask(Purpose.START, driven.now)
    assert machine.candidate is not None
    driven.links("c")
    assert not machine.candidate.has_met_all
    meets(driven)
    assert machine.candidate.has_met_all
    meets(driven, last=NEWER)
    assert machine.candidate.has_met_all, "it was so"


def test_who_is_eligible_needs_nobody() -> None:
    driven = started()
    meets(driven)
    assert driven.machine.candidate is not None
    assert not driven.machine.candidate.has_met_all


def test_one_that_compares_has_no_next_attempt_yet() -> None:
    driven = restarted()
    driven.machine.state = State.ASKING
    assert not asked(meets(driven))


def test_a_vote_to_hand_back_is_of_another_member() -> None:
    driven = restarted()
    machine = driven.machine
    machine.state = State.JOINING
    machine.asks(Purpose.HAND_BACK, Grant(2, "b", (Copy("b"),)), driven.now)
    meets(driven)
    assert machine.candidate is not None
    assert not machine.candidate.has_met_all


@pytest.mark.parametrize(("changes", "claims"), [
    ({}, False), ({"is_called": True}, True),
])  # fmt: skip
def test_a_claim_is_withdrawn_when_somebody_is_missed_unless_a_person_wants_it(
    changes: dict[str, Any], claims: bool
) -> None:
    driven = backup(NOBODY)
    machine = driven.machine
    machine.becomes(State.HELD)
    meets(driven)
    assert machine.claim == 1
    put(machine, changes)
    machine.peers.clear()
    machine._compare(driven.now)
    assert bool(machine.claim) is claims


def test_a_claim_stays_where_it_goes_on_alone() -> None:
    driven = backup(NOBODY, on_partition="continue-alone")
    machine = driven.machine
    machine.copies = (*WITH_B, Copy("c"))
    machine.becomes(State.HELD)
    machine.claim = 1
    meets(driven)
    assert machine.claim == 1


# --- becoming live ------------------------------------------------------------------------------


def asking(purpose: Purpose = Purpose.TAKE_OVER, **options: Any) -> Driven:
    driven = backup(**options)
    driven.machine._ask(purpose, driven.now)
    driven.does(driven.machine.done())
    assert driven.machine.state is State.ASKING
    return driven


def promoting(**options: Any) -> Driven:
    driven = asking(has_command=True, **options)
    driven.machine.passive_won(Grant(2, "a", (A,)), driven.now)
    driven.machine.drop_vote()
    assert Promote() in driven.does(driven.machine.done())
    assert driven.machine.state is State.PROMOTING
    return driven


def test_who_is_isolated_asks_nothing_and_begins_nothing() -> None:
    driven = backup()
    machine = driven.machine
    machine.isolation = "it has reached none of its peers yet"
    machine._ask(Purpose.START, driven.now)
    assert (machine.state, machine.candidate) == (State.HELD, None)
    for has_command in (True, False):
        driven = asking(has_command=has_command)
        driven.machine.isolation = "it has reached none of its peers yet"
        driven.machine._promote(Grant(2, "a", (A,)))
        assert driven.machine.state is State.HELD
    driven = backup()
    driven.machine.isolation = "it has reached none of its peers yet"
    driven.machine._begin(Grant(2, "a", (A,)))
    assert driven.machine.state is State.HELD


def test_its_command_is_asked_if_it_has_one() -> None:
    promoting()
    driven = asking()
    driven.machine.passive_won(Grant(2, "a", (A,)), driven.now)
    assert begins(driven.does(driven.machine.done()))


def test_its_command_says_yes() -> None:
    driven = promoting()
    [grant] = begins(driven.does(driven.machine.promoted(True, driven.now)))
    assert grant.epoch == 2


def test_its_command_says_no_and_it_takes_over_later_if_at_all() -> None:
    driven = promoting()
    machine = driven.machine
    driven.does(machine.promoted(False, driven.now))
    assert (machine.state, machine.why) == (State.HELD, "on-promote said no")
    assert machine.purpose is Purpose.TAKE_OVER
    assert machine.retry_at == machine.refused_until == driven.now + machine.options.retry_wait


@pytest.mark.parametrize("yes", [True, False])
def test_an_answer_of_its_command_that_comes_too_late_is_none(yes: bool) -> None:
    driven = promoting()
    driven.machine.becomes(State.JOINING)
    assert not driven.does(driven.machine.promoted(yes, driven.now))
    assert driven.machine.state is State.JOINING


def test_it_does_not_begin_what_it_begins() -> None:
    driven = backup()
    driven.syncs = False
    driven.machine._begin(Grant(2, "a", (A,)))
    assert begins(driven.machine.done())
    driven.machine._begin(Grant(3, "a", (A,)))
    assert not driven.machine.done()


@pytest.mark.parametrize(("drained", "drains", "closed"), [
    (True, True, True), (True, False, False), (False, True, False),
])  # fmt: skip
def test_who_has_given_all_away_begins_with_nothing_and_takes_nothing(
    drained: bool, drains: bool, closed: bool
) -> None:
    driven = backup(NOBODY, drains=drains)
    driven.machine.has_drained = drained
    driven.machine._begin(Grant(2, "a", (A,)))
    [begin] = [each for each in driven.machine.done() if isinstance(each, Begin)]
    assert (begin.empties, begin.is_closed) == (drained, closed)


def test_who_was_closed_begins_closed() -> None:
    driven = backup(NOBODY, drains=True)
    driven.machine.is_closed = True
    driven.machine._begin(Grant(2, "a", (A,)))
    [begin] = [each for each in driven.machine.done() if isinstance(each, Begin)]
    assert begin.is_closed


# --- what people want ---------------------------------------------------------------------------


def commands(driven: Driven, *, is_forced: bool = False) -> list[Action]:
    return driven.does(driven.machine.command(is_forced=is_forced, now=driven.now))


def test_forced_it_begins_an_epoch_that_is_newer_than_all_it_knows() -> None:
    driven = held(NOBODY)
    assert [each.epoch for each in begins(commands(driven, is_forced=True))] == [2]
    driven = held(NOBODY)
    driven.machine.peers["b"] = Hello(NODE, SAME, False, 6)
    assert [each.epoch for each in begins(commands(driven, is_forced=True))] == [7]
    driven = held()
    driven.machine.held_by = Grant(4, "b", (Copy("b"),))
    assert [each.epoch for each in begins(commands(driven, is_forced=True))] == [5]
    driven = held(NOBODY)
    meets(driven, is_following=True, epoch=1)
    [grant] = begins(commands(driven, is_forced=True))
    assert grant.epoch == 3, "they begin 2"


@pytest.mark.parametrize("state", [State.STARTING, State.BEGINNING, State.FAILED])
def test_forced_it_does_nothing_unless_it_looks_or_follows(state: State) -> None:
    driven = held()
    driven.machine.state = state
    assert not commands(driven, is_forced=True)


def test_without_a_node_there_is_nothing_to_be_forced() -> None:
    driven = Driven(past=Past(), is_preferred=False)
    driven.machine.becomes(State.JOINING)
    assert not commands(driven, is_forced=True)


def test_a_follower_that_is_forced_follows_no_more() -> None:
    driven = following()
    done = commands(driven, is_forced=True)
    assert Unfollow() in done
    assert begins(done)


def test_activated_it_asks_though_it_would_wait_for_that() -> None:
    driven = held(activates=False)
    assert asked(commands(driven))
    assert driven.machine.purpose is Purpose.TAKE_OVER
    assert driven.machine.state is State.ASKING


def test_activated_it_goes_first_where_nobody_can_be_asked() -> None:
    driven = held(NOBODY, activates=False)
    assert begins(commands(driven))
    assert not driven.machine.is_called


def test_activated_it_claims_and_is_called_until_that_is_over() -> None:
    driven = held(NOBODY, activates=False)
    meets(driven)
    commands(driven)
    assert driven.machine.claim
    assert driven.machine.is_called


@pytest.mark.parametrize("past", [
    {"copies": (Copy("b"),)}, {"copies": FORMER},
])  # fmt: skip
def test_activated_it_does_nothing_if_it_lacks_something(past: dict[str, Any]) -> None:
    for electorate in (WITNESS, NOBODY):
        driven = held(electorate, activates=False)
        put(driven.machine, past)
        assert not commands(driven)


def test_activated_it_does_nothing_while_it_follows() -> None:
    for electorate in (WITNESS, NOBODY):
        assert not commands(following(electorate, activates=False))


def test_activated_it_does_nothing_beside_one_that_may_be_live() -> None:
    driven = held(NOBODY, activates=False)
    meets(driven, is_following=True)
    assert not commands(driven)
    driven = held(NOBODY)
    assert driven.machine.unmet == "b"
    assert not commands(driven)


def test_only_one_that_is_in_sync_asks_for_the_role_of_its_live() -> None:
    driven = following()
    assert lines(driven.does(driven.machine.asks_for_role(driven.now))) == ["failback asked"]
    driven.machine.state = State.SYNCING
    assert not driven.does(driven.machine.asks_for_role(driven.now))
