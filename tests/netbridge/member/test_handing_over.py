"""A member that hands over, or parks, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker.netbridge.election.question import Copy
from shmbroker.netbridge.member.action import End, GoOn, Hold, StopServing
from shmbroker.netbridge.member.said import (
    Accept,
    AskBack,
    Closing,
    Leave,
    NoFailback,
    Offer,
    Resumed,
    TakeOver,
)
from shmbroker.netbridge.member.standing import Copies, HandedOver, Parked, Position, State
from shmbroker.netbridge.member.written import number_of
from tests.netbridge.member.driven import (
    NOBODY,
    SECOND,
    THREE,
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
    stops,
    three,
    told,
    wins,
    written,
)

# --- handing over ------------------------------------------------------------------------------


def test_it_hands_over_to_one_that_is_in_sync_and_says_so() -> None:
    driven = pair()
    done = hands(driven)
    assert told(done, "b") == [Closing(), Offer()]
    assert Hold() in done
    [ask] = asked(driven.hears("b", Accept()))
    assert ask.question.grant == SECOND
    wins(driven)
    assert TakeOver(SECOND) in told(driven.did, "b")
    assert StopServing("b") in driven.did
    assert "handed over" in lines(driven.did)
    assert driven.machine.state is State.JOINING


def test_it_ends_after_that_if_it_is_not_to_be_a_backup_or_was_stopped() -> None:
    for driven, begins in ((pair(restart_backup=False), hands), (pair(), stops)):
        begins(driven)
        driven.hears("b", Accept())
        answers(driven)
        answers(driven)
        assert driven.machine.state is State.STOPPED
        assert End(False) in driven.did


@pytest.mark.parametrize("broken", [
    lambda driven: setattr(driven.machine, "state", State.SUSPENDED),
    lambda driven: setattr(driven.machine, "granted", SECOND),
    lambda driven: setattr(driven.machine, "counted", frozenset()),
    lambda driven: driven.machine.followers.clear(),
    lambda driven: setattr(driven.machine.followers["b"], "is_announced", False),
    lambda driven: setattr(driven.machine.followers["b"], "is_leaving", True),
])  # fmt: skip
def test_it_does_not_hand_over_to_anybody_else(broken: Any) -> None:
    driven = pair()
    broken(driven)
    assert not driven.does(driven.machine.hands_over("b", driven.now))


def test_nothing_is_offered_before_the_journal_is_held_and_synced_and_the_backup_has_all() -> None:
    driven = pair()
    driven.syncs = False
    driven.writes()
    driven.does(driven.machine.hands_over("b", driven.now))
    driven.confirms("b")
    assert Offer() not in told(driven.did, "b"), "it may write on"
    driven.machine.is_held = True
    assert Offer() not in told(driven.confirms("b"), "b"), "not synced"
    assert Offer() in told(driven.catches_up(), "b")
    driven = pair()
    driven.does(driven.machine.hands_over("b", driven.now))
    driven.confirms("b")
    assert Offer() not in told(driven.did, "b"), "not held"
    driven = pair()
    driven.writes()
    hands(driven)
    assert Offer() not in told(driven.did, "b")
    assert Offer() in told(driven.confirms("b"), "b")
    assert not told(driven.confirms("b"), "b"), "once"


def test_what_was_held_is_synced_and_may_be_more_than_it_knew() -> None:
    driven = pair()
    driven.syncs = False
    driven.does(driven.machine.hands_over("b", driven.now))
    last = Position(1, "a", number_of(1, 9), 0)
    driven.does(driven.machine.held(last, driven.now))
    machine = driven.machine
    assert (machine.end, machine.synced_to, machine.last) == (last.number, last.number, last)
    later = Position(1, "a", number_of(1, 10), 0)
    driven.does(machine.held(later, driven.now))
    assert machine.end == last.number, "it is held already"
    driven = pair()
    driven.does(driven.machine.held(later, driven.now))
    assert driven.machine.end < later.number, "it does not hand over"
    assert not driven.machine.is_held


def test_what_it_knew_is_not_forgotten_by_being_held() -> None:
    driven = pair()
    driven.writes()
    last = driven.machine.last
    driven.does(driven.machine.hands_over("b", driven.now))
    driven.does(driven.machine.held(Position(1, "a", number_of(1, 1), 0), driven.now))
    assert driven.machine.last == last


def test_voters_are_asked_when_the_one_to_whom_it_hands_over_has_answered() -> None:
    driven = three()
    assert not driven.hears("b", Accept()), "it was not asked"
    driven.writes()
    hands(driven)
    assert not asked(driven.hears("b", Accept())), "it has not all"
    driven.confirms("b")
    driven.confirms("c")
    assert not asked(driven.hears("c", Accept())), "another one"
    assert asked(driven.hears("b", Accept()))
    assert not driven.hears("b", Accept()), "that is asked"
    driven.machine.drop_vote()
    driven.machine.granted = SECOND
    assert not driven.hears("b", Accept())


def test_a_word_that_comes_after_it_is_over() -> None:
    driven = pair()
    hands(driven)
    driven.machine.state = State.LIVE
    assert not driven.hears("b", Accept())


def test_where_nobody_can_be_asked_the_last_record_says_who_is_next() -> None:
    driven = pair(NOBODY)
    hands(driven)
    assert written(driven.hears("b", Accept())) == [HandedOver("b")]
    assert driven.machine.state is State.HANDING_OVER
    assert not driven.hears("b", Accept())
    done = driven.confirms("b")
    assert StopServing("b") in done
    assert driven.machine.handed_to == "b"


def test_no_majority_answers_and_the_last_record_says_it() -> None:
    driven = pair()
    hands(driven)
    driven.hears("b", Accept())
    loses_the_vote(driven)
    assert written(driven.did)[-1] == HandedOver("b")


def test_all_that_could_begin_have_the_last_record_first() -> None:
    """Voters that could not be asked for it may grant the next epoch to one that is lost."""
    driven = three()
    stops(driven)
    driven.hears("b", Accept())
    loses_the_vote(driven)
    driven.confirms("b")
    assert driven.machine.state is State.HANDING_OVER
    driven.confirms("c")
    assert driven.machine.state is State.STOPPED


def test_one_that_could_begin_is_lost_and_the_stop_ends_as_a_crash_does() -> None:
    for electorate, end in ((WITNESS, True), (NOBODY, False)):
        driven = three(electorate)
        stops(driven)
        driven.hears("b", Accept())
        loses_the_vote(driven)
        driven.loses("c")
        driven.confirms("b")
        [last] = [each for each in driven.did if isinstance(each, End)]
        assert last.is_failure is end


def test_one_that_is_lost_or_leaves_meanwhile_is_not_waited_for() -> None:
    for electorate in (WITNESS, NOBODY):
        for goes in (lambda driven: driven.loses("c"), lambda driven: driven.hears("c", Leave())):
            driven = three(electorate)
            driven.writes()
            stops(driven)
            driven.confirms("b")
            assert Offer() not in told(driven.did, "b"), "c lacks something, and may be asked for"
            goes(driven)
            assert Offer() in told(driven.did, "b")


def test_handing_over_ends_when_its_time_is_over() -> None:
    driven = pair(handover_timeout=60.0, replica_timeout=1000.0)
    driven.writes()
    hands(driven)
    done = driven.ticks(70.0)
    assert GoOn() in done
    assert told(done, "b") == [Resumed()]
    assert driven.machine.state is State.LIVE
    assert Offer() not in told(driven.confirms("b"), "b"), "it hands over no more"
    assert Offer() not in told(driven.ticks(71.0), "b")


def test_the_one_to_whom_it_hands_over_dies_on_this_host_and_it_goes_on_alone() -> None:
    driven = pair(NOBODY, on_partition="continue-alone")
    hands(driven)
    driven.does(driven.machine.died("b", driven.now))
    assert driven.machine.state is State.ALONE
    driven.ticks(70.0)
    assert driven.machine.state is State.ALONE


def test_a_stop_that_cannot_hand_over_ends_as_a_crash_does() -> None:
    driven = pair(replica_timeout=1000.0)
    driven.writes()
    stops(driven)
    done = driven.ticks(70.0)
    assert End(True, "handover-timeout") in done
    assert driven.machine.state is State.STOPPED


def test_what_voters_may_have_granted_is_not_taken_back() -> None:
    driven = pair(handover_timeout=0.5)
    hands(driven)
    driven.hears("b", Accept())
    assert driven.ticks(10.5)
    assert driven.machine.state is State.LIVE, "they were only asked whether they would"
    driven = pair(handover_timeout=0.5)
    hands(driven)
    driven.hears("b", Accept())
    answers(driven)
    driven.ticks(10.5)
    assert driven.machine.state is State.JOINING


def test_a_last_record_that_is_written_is_not_taken_back() -> None:
    driven = pair(NOBODY, handover_timeout=0.5)
    hands(driven)
    driven.hears("b", Accept())
    driven.ticks(10.5)
    assert driven.machine.state is State.JOINING


def test_one_that_is_lost_while_nobody_stops_ends_the_hand_over() -> None:
    driven = three()
    hands(driven)
    driven.loses("c")
    assert driven.machine.state is State.SUSPENDED
    assert GoOn() in driven.did


def test_the_preferred_one_asks_for_its_role() -> None:
    driven = pair()
    done = driven.hears("b", AskBack())
    assert "failback agreed" in lines(done)
    driven = pair()
    driven.machine.granted = SECOND
    assert not driven.hears("b", AskBack())
    driven = pair(allow_failback=False)
    assert told(driven.hears("b", AskBack()), "b") == [NoFailback("allow-failback is false")]
    driven = three()
    assert told(driven.hears("b", AskBack()), "b") == [NoFailback("another backup is in sync")]


# --- parked ------------------------------------------------------------------------------------


def test_the_list_says_that_it_outlives_its_boot_before_it_parks() -> None:
    driven = pair()
    driven.does(driven.machine.wants_replicated(driven.now))
    driven.confirms("b")
    stops(driven, hands_over=False)
    assert written(driven.did)[-1] == Copies((A, B))
    driven.confirms("b")
    assert written(driven.did)[-1] == Parked()
    assert written(driven.did).count(Copies((A, B))) == 2
    driven = pair()
    driven.does(driven.machine.stop(driven.now, hands_over=False))
    driven.machine.is_held, driven.machine.listed = True, (Copy("a", "boot a"), B)
    assert not written(driven.confirms("b")), "that record is on its way to the journal"


def test_the_voters_know_that_list_if_a_majority_of_them_is_there() -> None:
    driven = Driven(THREE)
    driven.follows("b")
    driven.does(driven.machine.wants_replicated(driven.now))
    driven.confirms("b")
    driven.votes = False
    stops(driven, hands_over=False)
    driven.confirms("b")
    assert Parked() not in written(driven.did)
    for voter in ("v1", "v2"):
        driven.does(driven.machine.voter_down(voter))
    driven.confirms("b")
    assert Parked() in written(driven.did), "who is not there cannot be told"


def test_where_nobody_can_be_asked_all_know_that_all_know() -> None:
    driven = pair(NOBODY)
    stops(driven, hands_over=False)
    assert written(driven.did)[-1] == Parked()
    driven.confirms("b")
    assert written(driven.did)[-1] == Parked(all_know=True)
    driven.confirms("b")
    assert driven.machine.state is State.STOPPED
