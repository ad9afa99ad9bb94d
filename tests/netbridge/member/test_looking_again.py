"""A member that looks whether it may serve, and meets others, or tries again after a while, word by
word."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker.netbridge.election.candidate import Electorate
from shmbroker.netbridge.election.question import Copy, Grant
from shmbroker.netbridge.member.action import Action, End
from shmbroker.netbridge.member.core import NEVER, Purpose
from shmbroker.netbridge.member.said import GoAhead, Hello, YouHold
from shmbroker.netbridge.member.standing import Past, Position, State
from shmbroker.netbridge.member.written import number_of
from tests.netbridge.member.driven import (
    FORMER,
    NEWER,
    NOBODY,
    NODE,
    OLDER,
    SAME,
    WITNESS,
    A,
    Driven,
    asked,
    backup,
    begun,
    following,
    joins,
    lines,
    looking,
    meets,
    put,
    serves,
    told,
)

OF_ANOTHER = b"M" * 16
OF_C = Grant(2, "c", (Copy("c"),))


def claiming() -> Driven:
    driven = looking(NOBODY)
    driven.machine.becomes(State.HELD)
    meets(driven)
    assert driven.machine.claim == 1
    return driven


# --- one that serves, at a start ----------------------------------------------------------------


def starting(**options: Any) -> Driven:
    driven = backup(**options)
    assert driven.machine.state is State.STARTING
    return driven


def test_a_backup_that_starts_joins_who_serves() -> None:
    driven = starting()
    assert joins(serves(driven))
    assert driven.machine.state is State.JOINING
    assert driven.machine.look_until == NEVER


@pytest.mark.parametrize("hello", [{"serves": False}, {"node": OF_ANOTHER}, {"epoch": 0}])
def test_it_starts_on_beside_others(hello: dict[str, Any]) -> None:
    driven = starting()
    assert not joins(serves(driven, **hello))
    assert driven.machine.state is State.STARTING
    assert driven.machine.look_until < NEVER


def test_a_new_one_joins_whatever_node_it_meets() -> None:
    driven = Driven(past=Past(), is_preferred=False)
    assert joins(serves(driven, node=OF_ANOTHER))


def test_who_serves_the_epoch_that_is_its_own_hears_so() -> None:
    driven = starting()
    driven.machine.last = Position(1, "a", number_of(1, 5), 0)
    assert not joins(serves(driven))
    assert driven.machine.state is State.STARTING
    assert joins(serves(driven, epoch=2))


@pytest.mark.parametrize("options", [{}, {"is_preferred": False}])
def test_the_preferred_one_that_does_not_look_for_a_live_is_stale_beside_one(
    options: dict[str, Any],
) -> None:
    driven = starting(**({"is_preferred": True, "check_for_live": False} | options))
    done = serves(driven, epoch=2)
    if options:
        assert driven.machine.state is State.JOINING
        return
    assert driven.machine.state is State.FAILED
    assert lines(done) == ["stale"]
    assert End(True, "stale: b serves epoch 2") in done


def test_it_joins_if_it_looks_for_one_or_is_new_or_has_let_it_ahead() -> None:
    driven = starting(is_preferred=True, check_for_live=True)
    assert joins(serves(driven))
    driven = Driven(past=Past(), is_preferred=True, check_for_live=False)
    assert joins(serves(driven))
    driven = starting(electorate=NOBODY, is_preferred=True, check_for_live=False)
    driven.machine.let_ahead = frozenset({"b"})
    assert joins(serves(driven, epoch=2))


# --- what others say of themselves --------------------------------------------------------------


def test_its_live_serves_no_more() -> None:
    driven = following()
    assert asked(driven.hears("b", Hello(NODE, SAME, False, 1)))
    driven = following()
    assert not asked(driven.hears("b", Hello(NODE, SAME, True, 1)))
    driven = following()
    assert not asked(meets(driven, "c"))
    assert driven.machine.state is State.IN_SYNC


def test_whom_it_wants_to_follow_serves_no_more() -> None:
    driven = looking()
    serves(driven)
    assert driven.machine.live == "b"
    driven.hears("b", Hello(NODE, SAME, True, 1))
    assert driven.machine.live == "b"
    meets(driven, "c")
    assert driven.machine.live == "b"
    assert not asked(driven.hears("b", Hello(NODE, SAME, False, 1)))
    assert driven.machine.live == ""


def handed() -> Driven:
    driven = looking()
    driven.machine.handed_to = "c"
    return driven


@pytest.mark.parametrize("hello", [
    {"is_eligible": False, "last": SAME}, {"last": OLDER},
])  # fmt: skip
def test_whom_it_was_handed_to_cannot_begin(hello: dict[str, Any]) -> None:
    driven = handed()
    meets(driven, "c", **hello)
    assert driven.machine.handed_to == ""


@pytest.mark.parametrize("hello", [
    {"last": SAME}, {"last": OLDER, "epoch": 2}, {"last": OLDER, "serves": True},
    {"last": OLDER, "is_following": True},
])  # fmt: skip
def test_whom_it_was_handed_to_may_begin_or_has(hello: dict[str, Any]) -> None:
    driven = handed()
    meets(driven, "c", **hello)
    assert driven.machine.handed_to == "c"


def test_another_one_says_nothing_of_that_nor_who_is_asked_by_a_follower() -> None:
    driven = handed()
    meets(driven, "b")
    assert driven.machine.handed_to == "c"
    driven = following()
    driven.machine.handed_to = "c"
    meets(driven, "c")
    assert driven.machine.handed_to == "c"


def parked(electorate: Electorate | None = NOBODY) -> Driven:
    driven = looking(electorate)
    driven.machine.state = State.PARKED
    driven.machine.is_parked = True
    return driven


def test_who_has_parked_it_does_not_know_so_it_is_in_doubt() -> None:
    driven = parked()
    meets(driven)
    assert not driven.machine.is_parked
    assert driven.machine.state is State.HELD
    driven = parked(WITNESS)
    assert asked(meets(driven))


def test_one_that_was_parked_and_whose_host_was_restarted_asks_nothing() -> None:
    driven = parked(WITNESS)
    driven.machine.copies = (*FORMER, Copy("c"))
    assert not asked(meets(driven))
    assert driven.machine.state is State.HELD


def test_who_has_parked_it_knows_so_it_stays() -> None:
    driven = parked()
    meets(driven, last=SAME, is_parked=True)
    assert driven.machine.state is State.PARKED
    assert driven.machine.is_parked


def test_only_who_has_parked_it_tells_of_that() -> None:
    driven = parked()
    driven.machine.peers["b"] = Hello(NODE, OLDER, False, 1)
    meets(driven, "c")
    assert driven.machine.is_parked
    driven = looking()
    driven.machine.is_parked = True
    meets(driven)
    assert driven.machine.is_parked, "it waits for nobody"


# --- trying again -------------------------------------------------------------------------------


def retries(driven: Driven, **changes: Any) -> list[Action]:
    put(driven.machine, changes)
    driven.machine.retry_at = driven.now
    return driven.ticks(driven.now)


def test_one_that_looks_asks_whether_it_may_take_over() -> None:
    driven = looking()
    assert asked(retries(driven))
    assert driven.machine.purpose is Purpose.TAKE_OVER
    driven = looking()
    driven.machine.state = State.HELD
    driven.machine.purpose = Purpose.START
    assert asked(retries(driven))
    assert driven.machine.purpose is Purpose.START, "what it has asked before"
    driven = looking()
    driven.machine.purpose = Purpose.START
    assert asked(retries(driven))
    assert driven.machine.purpose is Purpose.TAKE_OVER


def test_one_that_looks_goes_first_where_nobody_can_be_asked() -> None:
    driven = looking(NOBODY, on_partition="continue-alone")
    assert begun(retries(driven))
    driven = looking(NOBODY)
    assert not begun(retries(driven))
    assert driven.machine.state is State.HELD
    assert driven.machine.retry_at == driven.now + driven.machine.options.retry_wait


@pytest.mark.parametrize("changes", [
    {"state": State.WAITING}, {"state": State.PARKED}, {"handed_to": "c"},
    {"held_by": OF_C}, {"is_parked": True}, {"copies": (Copy("b"),)}, {"has_left": True},
])  # fmt: skip
@pytest.mark.parametrize("electorate", [WITNESS, NOBODY])
def test_it_asks_nothing_where_it_waits_for_another(
    electorate: Electorate | None, changes: dict[str, Any]
) -> None:
    driven = looking(electorate, on_partition="continue-alone")
    done = retries(driven, **changes)
    assert not asked(done)
    assert not begun(done)
    assert driven.machine.retry_at == driven.now + driven.machine.options.retry_wait


def test_what_another_one_held_is_over_when_its_epoch_has_come() -> None:
    driven = looking()
    driven.machine.held_by = Grant(1, "c", (Copy("c"),))
    assert asked(retries(driven))


def test_who_has_parked_the_group_serves_again() -> None:
    driven = looking()
    driven.machine.last = Position(1, "a", number_of(1, 5), 0)
    assert asked(retries(driven, is_parked=True))


def test_whom_it_was_handed_to_asks() -> None:
    driven = looking()
    assert asked(retries(driven, handed_to="a"))


def test_who_has_let_go_of_an_epoch_hears_again_that_it_has_it() -> None:
    driven = looking()
    driven.links("c")
    assert told(retries(driven, held_by=OF_C), "c") == [YouHold(OF_C)]
    driven = looking()
    driven.links("c")
    assert not told(retries(driven, held_by=Grant(1, "c", (Copy("c"),))), "c")
    driven = following()
    driven.links("c")
    assert not told(retries(driven, held_by=OF_C), "c")


def test_one_that_is_in_doubt_asks_what_the_voters_know() -> None:
    driven = looking()
    done = retries(driven, copies=FORMER)
    assert asked(done)
    assert driven.machine.purpose is Purpose.START
    driven = looking(NOBODY)
    retries(driven, copies=FORMER)
    assert driven.machine.state is State.HELD
    driven = looking(activates=False)
    retries(driven, copies=FORMER)
    assert driven.machine.state is State.HELD


def test_one_in_doubt_asks_once_if_all_are_here() -> None:
    driven = looking()
    driven.machine.peers["b"] = Hello(NODE, OLDER, False, 1)
    assert len(asked(retries(driven, copies=FORMER))) == 1


def test_one_that_has_left_asks_only_if_all_are_here() -> None:
    driven = looking()
    driven.machine.peers["b"] = Hello(NODE, OLDER, False, 1)
    assert asked(retries(driven, has_left=True))


@pytest.mark.parametrize("changes", [
    {"handed_to": "c"}, {"held_by": OF_C}, {"state": State.WAITING}, {"copies": (Copy("b"),)},
])  # fmt: skip
def test_one_in_doubt_asks_nothing_where_it_waits_for_another(changes: dict[str, Any]) -> None:
    driven = looking()
    assert not asked(retries(driven, **({"copies": FORMER} | changes)))
    assert driven.machine.state is not State.HELD


def test_it_joins_again_whom_it_had_asked() -> None:
    driven = looking()
    assert joins(serves(driven))
    assert joins(retries(driven))
    assert driven.machine.state is State.JOINING


def test_a_follower_keeps_its_live_and_asks_nothing() -> None:
    driven = following()
    assert not retries(driven)
    assert driven.machine.live == "b"
    assert driven.machine.state is State.IN_SYNC
    assert driven.machine.retry_at == NEVER


def test_one_that_serves_or_asks_is_not_disturbed() -> None:
    driven = Driven()
    assert not joins(retries(driven, live="b"))
    assert driven.machine.live == "b"
    driven = looking()
    assert asked(retries(driven))
    before = driven.machine.candidate
    assert not asked(retries(driven))
    assert driven.machine.candidate is before


def test_one_that_does_not_look_any_more_does_not_try_again() -> None:
    driven = looking()
    assert not retries(driven, state=State.PROMOTING)
    assert driven.machine.retry_at == NEVER


def test_its_claim_is_said_again() -> None:
    driven = claiming()
    assert any(isinstance(each, Hello) for each in told(retries(driven), "b"))
    driven = looking(NOBODY)
    driven.links("c")
    driven.machine.state = State.WAITING
    assert not told(retries(driven), "c")


def test_nothing_is_done_before_its_time() -> None:
    driven = looking()
    machine = driven.machine
    for name in ("look_until", "closing_until", "retry_at"):
        put(machine, {"look_until": NEVER, "closing_until": NEVER, "retry_at": NEVER})
        put(machine, {name: driven.now + 1.0})
        assert machine.deadline == driven.now + 1.0
        assert not driven.does(machine.tick(driven.now + 0.5))
        assert machine.state is State.JOINING
    assert machine.retry_at == driven.now + 1.0


def test_who_lets_it_go_ahead_is_heard() -> None:
    assert begun(claiming().hears("b", GoAhead(1)))
    assert not claiming().hears("b", GoAhead(2))


def test_whom_it_let_ahead_is_met_with_that_and_is_let_ahead_no_more() -> None:
    driven = backup(NOBODY)
    driven.machine.becomes(State.HELD)
    meets(driven, claim=1, last=NEWER)
    assert driven.machine.let_ahead == {"b"}
    meets(driven)
    assert not driven.machine.let_ahead
    assert driven.machine.copies != (A,)
