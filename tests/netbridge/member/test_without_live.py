"""A member that has lost its live, or is told by others what it may do, word by word."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shmbroker.netbridge.election.candidate import Electorate
from shmbroker.netbridge.election.question import Copy, Grant
from shmbroker.netbridge.member.action import (
    Action,
    End,
    Promote,
    StopServing,
    Unfollow,
    WriteLeft,
)
from shmbroker.netbridge.member.core import NEVER, RANK_SECONDS, Purpose
from shmbroker.netbridge.member.said import (
    Accept,
    AskBack,
    Closing,
    Dropped,
    Hello,
    InSync,
    Leave,
    NoFailback,
    Offer,
    Resumed,
    TakeOver,
    YouHold,
)
from shmbroker.netbridge.member.standing import Position, State
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
    held,
    joins,
    lines,
    looking,
    put,
    told,
)

OURS, OF_C = Grant(2, "a", (A,)), Grant(2, "c", (Copy("c"),))


def loses(driven: Driven, **changes: Any) -> list[Action]:
    put(driven.machine, changes)
    return driven.loses("b")


# --- losing its live ----------------------------------------------------------------------------


def test_it_asks_at_once_and_follows_no_more() -> None:
    done = loses(following())
    assert asked(done)
    assert Unfollow() in done


@pytest.mark.parametrize("changes", [
    {"handed_to": "a"}, {"handed_to": "c"}, {"is_parked": True}, {"copies": (Copy("b"),)},
    {"state": State.SYNCING, "copies": ()},
])  # fmt: skip
def test_it_asks_nothing_if_it_knows_what_follows_or_lacks_something(
    changes: dict[str, Any],
) -> None:
    assert not asked(loses(following(), **changes))


@pytest.mark.parametrize(("changes", "state"), [
    ({"copies": (Copy("b"),)}, State.JOINING), ({"handed_to": "c"}, State.JOINING),
    ({"is_parked": True}, State.PARKED), ({}, State.HELD),
])  # fmt: skip
@pytest.mark.parametrize("electorate", [WITNESS, NOBODY])
def test_what_it_does_instead(
    electorate: Electorate | None, changes: dict[str, Any], state: State
) -> None:
    driven = following(electorate)
    loses(driven, **changes)
    if electorate is None or changes:
        assert driven.machine.state is state


def test_it_says_that_it_was_not_in_sync() -> None:
    assert lines(loses(following(), copies=(Copy("b"),))) == ["not in sync"]
    assert "not in sync" not in lines(loses(following()))


def test_whom_it_was_handed_to_begins_without_a_question() -> None:
    assert begun(loses(following(), handed_to="a"))
    assert Promote() in loses(following(has_command=True), handed_to="a")


@pytest.mark.parametrize(("options", "begins"), [
    ({"on_partition": "continue-alone"}, True), ({}, False),
    ({"on_partition": "continue-alone", "activates": False}, False),
])  # fmt: skip
def test_where_nobody_can_be_asked_it_may_go_on_alone(
    options: dict[str, Any], begins: bool
) -> None:
    driven = following(NOBODY, **options)
    assert begun(loses(driven)) is begins
    if not begins:
        assert driven.machine.why == "waits for b (epoch 1)"


def test_one_that_leaves_tells_all_that_it_follows_no_more_and_leaves() -> None:
    driven = following()
    driven.machine.stop(driven.now)
    driven.machine.live = "b"
    driven.machine._lost_live(driven.now)
    done = driven.does(driven.machine.done())
    assert driven.machine.state is State.LEAVING
    assert Unfollow() in done
    assert not asked(done)
    driven = following(NOBODY, on_partition="continue-alone")
    driven.machine.stop(driven.now)
    driven.machine._lost_live(driven.now)
    assert driven.machine.state is State.LEAVING


def with_c(
    electorate: Electorate | None = WITNESS, last: Position = SAME, **options: Any
) -> Driven:
    """And c was in sync, too, and is linked."""
    driven = following(electorate, **options)
    driven.machine.copies = (Copy("b"), Copy("a", "boot a"), Copy("c"))
    driven.links("c", epoch=1, last=last, is_following=True)
    return driven


def test_they_hear_first_where_each_one_ends_then_who_has_more_goes_first() -> None:
    driven = with_c(last=NEWER)
    assert not asked(loses(driven))
    assert driven.machine.state is State.ASKING
    assert driven.machine.retry_at == driven.now + RANK_SECONDS
    assert not asked(driven.ticks(driven.machine.retry_at))
    assert driven.machine.retry_at == driven.now + RANK_SECONDS
    assert asked(driven.ticks(driven.machine.retry_at))
    assert driven.machine.purpose is Purpose.TAKE_OVER


def test_who_has_most_asks_when_it_has_heard_where_each_one_ends() -> None:
    driven = with_c(last=OLDER)
    assert not asked(loses(driven))
    assert asked(driven.ticks(driven.machine.retry_at))


def test_who_goes_before_it_and_is_no_more_here_is_waited_for_no_longer() -> None:
    driven = with_c(last=NEWER)
    loses(driven)
    driven.loses("c")
    assert asked(driven.ticks(driven.machine.retry_at))


def test_one_that_asks_no_more_waits_for_nobody() -> None:
    driven = with_c(last=NEWER)
    loses(driven)
    driven.machine.becomes(State.HELD)
    assert asked(driven.ticks(driven.machine.retry_at))


def test_its_former_live_is_waited_for_by_nobody() -> None:
    driven = following()
    driven.machine._lost_live(driven.now)  # it has stopped, and is linked
    assert asked(driven.does(driven.machine.done()))


def test_where_nobody_can_be_asked_and_it_goes_on_alone_they_compare_as_well() -> None:
    driven = with_c(NOBODY, last=OLDER, on_partition="continue-alone")
    assert not begun(loses(driven))
    assert driven.machine.state is State.ASKING


# --- a proof of death ---------------------------------------------------------------------------


def proves(driven: Driven, member: str = "b") -> list[Action]:
    return driven.does(driven.machine.died(member, driven.now))


def test_its_live_is_dead_and_it_goes_on() -> None:
    driven = following(NOBODY)
    done = proves(driven)
    assert Unfollow() in done
    assert begun(done)
    assert "held" not in lines(done)
    driven = following(NOBODY)
    loses(driven)
    assert begun(proves(driven)), "it had lost the link before"


def test_a_proof_is_nothing_where_voters_are_and_is_told_once() -> None:
    driven = following()
    assert not proves(driven)
    assert not driven.machine.proven
    driven = following(NOBODY)
    driven.links("c")
    assert told(proves(driven, "d"), "c")
    assert not proves(driven, "d")


@pytest.mark.parametrize("changes", [
    {"state": State.JOINING}, {"copies": (Copy("b"),)}, {"is_parked": True}, {"handed_to": "c"},
])  # fmt: skip
def test_only_one_that_followed_and_has_all_goes_on(changes: dict[str, Any]) -> None:
    driven = following(NOBODY)
    put(driven.machine, changes)
    assert not begun(proves(driven))
    assert Unfollow() not in driven.did[-3:]


def test_one_to_which_it_was_handed_goes_on_and_one_that_is_held() -> None:
    driven = following(NOBODY)
    driven.machine.handed_to = "a"
    assert begun(proves(driven))
    driven = following(NOBODY)
    driven.machine.becomes(State.HELD)
    assert begun(proves(driven))


def test_the_death_of_another_one_is_no_reason() -> None:
    driven = with_c(NOBODY)
    driven.loses("c")
    assert not begun(proves(driven, "c"))
    assert driven.machine.state is State.IN_SYNC


def test_another_one_that_counts_is_asked_first_and_one_that_is_missed_waited_for() -> None:
    driven = with_c(NOBODY)
    driven.links("c", epoch=1, last=OLDER)
    proves(driven)
    assert driven.machine.claim
    driven = with_c(NOBODY)
    driven.loses("c")
    proves(driven)
    assert driven.machine.state is State.HELD
    assert driven.machine.why == "waits for c (epoch 1)"


# --- leaving ------------------------------------------------------------------------------------


def stops(driven: Driven) -> list[Action]:
    return driven.does(driven.machine.stop(driven.now))


def test_a_follower_notes_that_it_leaves_and_then_says_so() -> None:
    driven = following()
    assert stops(driven)[-2:] == [Unfollow(), WriteLeft()]
    assert driven.machine.state is State.LEAVING
    done = driven.does(driven.machine.left())
    assert told(done, "b") == [Leave()]
    assert End(False) in done
    assert driven.machine.has_left
    assert driven.machine.state is State.STOPPED


def test_one_that_does_not_follow_stops_at_once() -> None:
    driven = looking()
    assert stops(driven) == [End(False)]
    assert driven.machine.state is State.STOPPED


def test_what_is_synced_of_one_that_does_not_leave_is_nothing() -> None:
    driven = following()
    assert not driven.does(driven.machine.left())
    assert driven.machine.state is State.IN_SYNC


def test_one_that_begins_serves_no_more() -> None:
    driven = looking()
    driven.machine.state = State.BEGINNING
    assert StopServing() in stops(driven)


def test_whoever_ends_because_of_a_fault_says_so() -> None:
    driven = looking()
    driven.machine._ends(State.FAILED, "a reason")
    assert driven.machine.done() == [End(True, "a reason")]


# --- what voters say ----------------------------------------------------------------------------


def asking(purpose: Purpose = Purpose.TAKE_OVER, **options: Any) -> Driven:
    driven = backup(**options)
    driven.machine._ask(purpose, driven.now)
    driven.does(driven.machine.done())
    driven.machine.drop_vote()
    assert driven.machine.state is State.ASKING
    return driven


def won(driven: Driven, grant: Grant = OURS) -> list[Action]:
    driven.machine.passive_won(grant, driven.now)
    return driven.does(driven.machine.done())


def lost(driven: Driven) -> list[Action]:
    driven.machine.passive_lost(driven.now)
    return driven.does(driven.machine.done())


def taken(driven: Driven, grant: Grant = OF_C) -> list[Action]:
    driven.machine.passive_taken(grant, driven.now)
    return driven.does(driven.machine.done())


def test_what_was_granted_for_another_boot_is_not_begun() -> None:
    assert begun(won(asking()))
    of_former = Grant(2, "a", (Copy("a", "former boot"),))
    driven = asking()
    assert not begun(won(driven, of_former))
    assert driven.machine.state is State.HELD
    driven = asking()
    driven.machine.peers["b"] = Hello(NODE, OLDER, False, 1)
    assert begun(won(driven, of_former)), "all on the list are here"


def test_what_is_granted_to_one_that_does_not_ask_is_not_begun() -> None:
    for grant in (OURS, Grant(2, "a", (Copy("a", "former boot"),))):
        driven = asking()
        driven.machine.state = State.JOINING
        assert not won(driven, grant)
        assert driven.machine.state is State.JOINING


def test_what_it_hands_back_is_told_to_whom_it_is_granted() -> None:
    driven = looking()
    driven.links("c")
    driven.machine.purpose = Purpose.HAND_BACK
    assert told(won(driven, OF_C), "c") == [TakeOver(OF_C)]
    assert driven.machine.state is State.JOINING


def test_a_vote_is_lost_at_a_start_and_it_is_held() -> None:
    driven = asking(Purpose.START)
    lost(driven)
    machine = driven.machine
    assert (machine.state, machine.why) == (State.HELD, "waits for b (epoch 1)")
    assert machine.retry_at == driven.now + machine.options.retry_wait


def test_a_vote_is_lost_after_the_loss_of_its_live_and_it_looks_for_another() -> None:
    driven = asking()
    lost(driven)
    assert driven.machine.state is State.JOINING
    driven = asking()
    driven.machine.purpose = Purpose.HAND_BACK
    assert not lost(driven)
    assert driven.machine.state is State.ASKING


@pytest.mark.parametrize(("purpose", "state"), [
    (Purpose.START, State.HELD), (Purpose.TAKE_OVER, State.JOINING),
])  # fmt: skip
def test_the_epoch_is_of_another_one(purpose: Purpose, state: State) -> None:
    driven = asking(purpose)
    taken(driven)
    machine = driven.machine
    assert (machine.state, machine.held_by) == (state, OF_C)
    assert machine.why == "c has epoch 2"
    assert machine.retry_at == driven.now + machine.options.retry_wait


def test_the_epoch_is_its_own_and_who_asked_for_it_could_not_say_so() -> None:
    driven = asking()
    assert begun(taken(driven, OURS))
    assert driven.machine.held_by is None


def test_an_answer_to_one_that_does_not_ask_is_nothing() -> None:
    for grant in (OF_C, OURS):
        driven = asking()
        driven.machine.state = State.JOINING
        assert not taken(driven, grant)
        assert driven.machine.held_by is None


# --- what its live says -------------------------------------------------------------------------


def test_a_live_that_closes_has_so_long_to_hand_over() -> None:
    driven = following(NOBODY)
    machine = driven.machine
    driven.hears("b", Closing())
    assert machine.closing_until == driven.now + machine.options.handover_timeout
    assert machine.deadline == machine.closing_until
    driven.hears("b", Resumed())
    assert machine.closing_until == NEVER
    driven.hears("b", Closing())
    driven.ticks(machine.closing_until)
    assert machine.state is State.HELD


def test_only_one_that_is_in_sync_accepts() -> None:
    driven = following()
    assert told(driven.hears("b", Offer()), "b") == [Accept()]
    driven.machine.state = State.SYNCING
    assert not driven.hears("b", Offer())


def test_a_live_that_drops_it_and_serves_is_joined_again() -> None:
    driven = following()
    done = driven.hears("b", Dropped("too slow"))
    assert Unfollow() in done
    assert joins(done)
    assert driven.machine.why == "too slow"
    driven = following()
    done = driven.hears("b", Dropped("it stops", serves=False))
    assert asked(done)


def test_a_live_that_does_not_give_its_role_back_says_why() -> None:
    assert lines(following().hears("b", NoFailback("a reason"))) == ["failback refused"]


def test_what_is_for_a_live_is_nothing_to_a_follower() -> None:
    assert not following().hears("b", AskBack())


@pytest.mark.parametrize("what", [
    InSync(1), Closing(), Offer(), Dropped("a reason"), NoFailback("a reason"),
])  # fmt: skip
def test_others_say_nothing_of_that(what: Any) -> None:
    driven = following()
    driven.links("c")
    before = driven.machine.closing_until
    assert not driven.hears("c", what)
    driven.machine.state = State.JOINING
    assert not driven.hears("b", what)
    assert driven.machine.closing_until == before


def test_one_resumes_for_itself_only() -> None:
    driven = following()
    driven.hears("b", Closing())
    driven.hears("c", Resumed())
    assert driven.machine.closing_until < NEVER


# --- what is granted to it ----------------------------------------------------------------------


def test_it_takes_over_what_another_has_asked_for_in_its_name() -> None:
    for driven in (following(), looking()):
        done = driven.hears("b", TakeOver(OURS))
        assert Unfollow() in done
        assert begun(done)


@pytest.mark.parametrize("grant", [
    OF_C, replace(OURS, epoch=1), Grant(2, "a", (Copy("a", "former boot"),)),
])  # fmt: skip
def test_it_takes_nothing_over_that_is_not_for_it(grant: Grant) -> None:
    assert not following().hears("b", TakeOver(grant))


def test_it_takes_nothing_over_if_it_lacks_something_or_does_something_else() -> None:
    driven = following()
    driven.machine.copies = FORMER
    assert not driven.hears("b", TakeOver(OURS))
    for state in (State.STARTING, State.PROMOTING):
        driven = looking()
        driven.machine.state = state
        assert not driven.hears("b", TakeOver(OURS))


def test_it_takes_over_if_all_are_here_though_its_host_was_restarted() -> None:
    driven = looking()
    driven.machine.copies = FORMER
    driven.machine.peers["b"] = Hello(NODE, OLDER, False, 1)
    assert begun(driven.hears("b", TakeOver(OURS)))


def holds(driven: Driven, grant: Grant = OURS, member: str = "b") -> list[Action]:
    return driven.hears(member, YouHold(grant))


def test_it_asks_for_what_was_granted_to_it() -> None:
    driven = held()
    [ask, *_] = asked(holds(driven))
    assert driven.machine.purpose is Purpose.TAKE_OVER
    assert ask.question.grant.holder == "a"


@pytest.mark.parametrize("grant", [OF_C, replace(OURS, epoch=1)])
def test_it_asks_for_nothing_that_was_not(grant: Grant) -> None:
    driven = held()
    driven.machine.peers["b"] = Hello(NODE, NEWER, False, 1)
    assert not holds(driven, grant)
    assert driven.machine.state is State.HELD


def test_it_asks_nothing_while_it_asks_or_follows_or_where_nobody_can_be_asked() -> None:
    driven = backup()
    driven.machine._ask(Purpose.START, driven.now)
    driven.machine.done()
    assert not holds(driven)
    assert driven.machine.purpose is Purpose.START
    assert not holds(following())
    assert not holds(held(NOBODY))


def test_what_it_cannot_begin_it_hands_back_to_one_that_can() -> None:
    driven = held()
    driven.machine.copies = FORMER
    driven.machine.peers["b"] = Hello(NODE, NEWER, False, 1)
    [ask, *_] = asked(holds(driven))
    assert driven.machine.purpose is Purpose.HAND_BACK
    assert ask.question.grant == Grant(3, "b", (Copy("b"),))
    assert driven.machine.state is State.HELD


@pytest.mark.parametrize("hello", [
    {"epoch": 2}, {"epoch": 1, "is_listed": False, "is_following": True},
])  # fmt: skip
def test_it_hands_nothing_back_to_one_that_cannot(hello: dict[str, Any]) -> None:
    driven = held()
    driven.machine.copies = FORMER
    driven.machine.peers["b"] = Hello(**({"node": NODE, "last": NEWER, "serves": False} | hello))
    assert not holds(driven)
    assert not holds(driven, member="c")


def test_what_it_holds_for_another_boot_is_asked_for_if_all_are_here() -> None:
    driven = held()
    driven.machine.copies = FORMER
    driven.machine.peers["b"] = Hello(NODE, OLDER, False, 1)
    assert asked(holds(driven))
    assert driven.machine.purpose is Purpose.START
    driven = held()
    assert not asked(holds(driven, Grant(2, "a", (Copy("a", "former boot"),))))


def test_who_knows_more_and_can_begin_gets_it_back() -> None:
    """Its host was not restarted, but it was dropped, and does not know."""
    driven = held()
    newer = replace(OURS, epoch=3)
    driven.machine.peers["b"] = Hello(NODE, NEWER, False, 2)
    assert asked(holds(driven, newer))
    assert driven.machine.purpose is Purpose.HAND_BACK
    driven = held()
    driven.machine.peers["b"] = Hello(NODE, SAME, False, 1)
    assert asked(holds(driven))
    assert driven.machine.purpose is Purpose.TAKE_OVER, "it knows no more"
    driven = held()
    driven.machine.peers["b"] = Hello(NODE, NEWER, False, 2)
    assert asked(holds(driven, replace(OURS, epoch=4)))
    assert driven.machine.purpose is Purpose.TAKE_OVER, "nor can it"
