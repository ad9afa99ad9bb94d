"""Replicas that leave a live, are lost, die or are silent."""

from __future__ import annotations

from dataclasses import replace

from shmbroker.netbridge.election.question import Copy, Grant, Renewed
from shmbroker.netbridge.member.action import Begin, LookAround, StopShipping, TellVoter, Write
from shmbroker.netbridge.member.said import Closing, Dropped, Leave
from shmbroker.netbridge.member.standing import Copies, State
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
    three,
    told,
    wins,
    written,
)

# --- leaving, and being lost -------------------------------------------------------------------


def test_a_backup_that_leaves_is_dropped_when_the_voters_know() -> None:
    driven = three()
    machine = driven.machine
    driven.votes = False
    driven.hears("c", Leave())
    driven.confirms("b")
    assert machine.counted == {"b", "c"}
    driven.votes = True
    done = driven.ticks(10.2)
    assert StopShipping("c") in done
    assert (machine.counted, machine.state) == ({"b"}, State.LIVE)
    assert "level fell" not in lines(done)


def test_one_voter_that_knows_is_not_a_majority() -> None:
    driven = Driven(THREE)
    driven.follows("b")
    machine = driven.machine
    driven.votes = False
    driven.hears("b", Leave())
    said = Renewed(NODE, 1, machine.version, machine.lease.serial)
    driven.does(machine.voter_said("v1", said, driven.now))
    assert machine.counted == {"b"}
    driven.does(machine.voter_said("v2", said, driven.now))
    assert not machine.counted


def test_one_that_counts_and_is_not_listed_yet_is_lost() -> None:
    driven = Driven()
    driven.machine.counted = frozenset("b")
    assert not told(driven.ticks(10.2))
    assert driven.machine.counted == {"b"}, "it did not leave"


def test_what_is_synced_after_its_end_changes_no_list() -> None:
    driven = pair()
    driven.syncs = False
    driven.does(driven.machine.wants_replicated(driven.now))
    driven.confirms("b")
    driven.is_outdone()
    assert driven.machine.state is State.FENCED
    driven.machine.followers.clear()
    driven.machine.lists = [(driven.machine.end, (A,))]
    driven.catches_up()
    assert driven.machine.listed == (A, B)


def test_the_last_one_leaves_and_the_level_falls() -> None:
    driven = pair()
    driven.did.clear()
    driven.hears("b", Leave())
    assert (driven.machine.counted, driven.machine.state) == (set(), State.ALONE)
    assert "level fell" in lines(driven.did)
    assert driven.machine.copies == (A,)


def test_one_that_never_counted_or_is_not_known_leaves_without_a_record() -> None:
    driven = Driven()
    driven.links("b")
    driven.joins("b")
    done = driven.hears("b", Leave())
    assert StopShipping("b") in done
    assert not written(done)
    assert not driven.hears("b", Leave())
    driven = pair()
    driven.loses("b")
    driven.links("b")
    assert not driven.hears("b", Leave()), "it counts, and does not follow"


def test_one_leaves_while_another_is_lost() -> None:
    driven = three(NOBODY)
    machine = driven.machine
    driven.loses("b")
    assert machine.state is State.SUSPENDED
    driven.hears("c", Leave())
    assert (machine.counted, machine.state) == ({"b", "c"}, State.SUSPENDED), "b has not that list"
    driven.links("b")
    driven.joins("b")
    driven.confirms("b")
    assert (machine.counted, machine.state) == ({"b"}, State.LIVE)


def test_one_that_leaves_while_it_hands_over_is_not_taken_off_the_list() -> None:
    driven = three()
    machine = driven.machine
    driven.does(machine.stop(driven.now))
    assert machine.state is State.HANDING_OVER
    assert Closing() in told(driven.did, "c")
    assert not written(driven.hears("c", Leave()))


def test_who_leaves_while_an_epoch_begins_is_taken_off_its_list_afterwards() -> None:
    driven = three()
    driven.syncs = False
    driven.machine.granted = Grant(2, "a", (A, B, Copy("c", "boot c")))
    driven.hears("c", Leave())
    assert driven.listed == {"a", "b", "c"}


def test_alone_on_the_list_it_outlives_its_boot_again() -> None:
    driven = pair()
    driven.does(driven.machine.wants_replicated(10.0))
    driven.confirms("b")
    driven.hears("b", Leave())
    assert driven.machine.copies == (A,)
    driven = three()
    driven.does(driven.machine.wants_replicated(10.0))
    driven.hears("c", Leave())
    assert driven.machine.copies == (Copy("a", "boot a"), B)


def test_a_replica_that_is_lost_suspends_it_and_it_asks() -> None:
    driven = pair()
    done = driven.loses("b")
    assert driven.machine.state is State.SUSPENDED
    assert {"replica lost", "suspended"} <= set(lines(done))
    [ask] = asked(done)
    assert ask.question.grant == Grant(2, "a", (A,))


def test_the_second_one_that_is_lost_is_in_the_next_question() -> None:
    driven = three()
    [first] = asked(driven.loses("b"))
    assert first.question.grant.members == {"a", "c"}
    done = driven.loses("c")
    [second] = asked(done)
    assert second.question.grant.members == {"a"}
    assert "suspended" not in lines(done), "it is so already"
    driven = three()
    driven.loses("b")
    answers(driven)
    assert not asked(driven.loses("c")), "what was promised to it comes first"


def test_one_that_is_leaving_is_not_in_the_question() -> None:
    driven = three()
    driven.votes = False
    driven.hears("c", Leave())
    assert not driven.loses("c"), "it was about to go"
    [ask] = asked(driven.loses("b"))
    assert ask.question.grant.members == {"a"}
    driven = three()
    driven.machine.followers["c"].is_leaving = True  # and the list does not say so yet
    [ask] = asked(driven.loses("b"))
    assert ask.question.grant.members == {"a"}


def test_without_voters_it_goes_on_alone_if_that_is_configured() -> None:
    for changes, goes_on in (
        ({}, False),
        ({"on_partition": "continue-alone"}, True),
        ({"activates": False}, True),  # a person, or a cluster manager, says who is live
    ):
        driven = pair(NOBODY, **changes)
        done = driven.loses("b")
        assert any(isinstance(each, Begin) for each in done) is goes_on
        assert (driven.machine.state is State.ALONE) is goes_on


def test_without_a_vote_it_goes_on_where_voters_are_there() -> None:
    driven = pair(votes=False)
    driven.loses("b")
    assert (driven.machine.state, driven.machine.epoch) == (State.ALONE, 2)


def test_while_it_is_isolated_it_does_not_go_on() -> None:
    driven = pair(NOBODY, is_checked=True, on_partition="continue-alone")
    assert driven.machine.state is not State.LIVE
    driven = pair(NOBODY, on_partition="continue-alone")
    driven.machine.options = replace(driven.machine.options, is_checked=True)
    done = driven.loses("b")
    assert LookAround() in done
    assert driven.machine.state is State.SUSPENDED


def test_a_replica_that_is_lost_while_an_epoch_begins_is_looked_at_when_it_has() -> None:
    driven = three()
    driven.syncs = False
    driven.loses("b")
    wins(driven)
    assert not asked(driven.loses("c"))
    [ask] = asked(driven.catches_up())
    assert ask.question.grant.members == {"a"}
    assert ask.question.grant.epoch == 3


def test_a_replica_that_is_lost_while_it_stops_ends_it_if_it_was_to_be_the_next() -> None:
    driven = three()
    driven.does(driven.machine.stop(driven.now))
    done = driven.loses("b")
    assert driven.machine.state is State.STOPPED
    assert "suspended" not in lines(done)


def test_an_epoch_begins_with_its_first_record_and_not_with_one_before() -> None:
    driven = pair()
    driven.syncs = False
    driven.writes()
    number = driven.machine.end
    driven.loses("b")
    driven.does(driven.machine.continues(driven.now))
    driven.does(driven.machine.has_synced(number, driven.now))
    assert driven.machine.epoch == 1
    driven.catches_up()
    assert driven.machine.epoch == 2


def test_a_live_that_goes_on_alone_says_that_the_level_fell() -> None:
    driven = pair()
    driven.loses("b")
    driven.did.clear()
    driven.does(driven.machine.continues(driven.now))
    assert (driven.machine.state, "level fell" in lines(driven.did)) == (State.ALONE, True)
    assert "took over" not in lines(driven.did), "it serves already"
    driven.did.clear()
    driven.machine.state = State.SUSPENDED
    driven.does(driven.machine.continues(driven.now))
    assert "level fell" not in lines(driven.did), "it was alone before"


def test_a_person_says_that_it_goes_on_only_while_it_is_suspended() -> None:
    driven = pair()
    assert not driven.does(driven.machine.continues(driven.now))
    driven.syncs = False
    driven.loses("b")
    assert driven.does(driven.machine.continues(driven.now))
    assert not driven.does(driven.machine.continues(driven.now)), "that epoch begins"


def test_one_of_two_is_lost_and_no_level_falls() -> None:
    driven = three()
    driven.loses("b")
    wins(driven)
    assert driven.machine.state is State.LIVE
    assert driven.machine.counted == {"c"}
    assert "level fell" not in lines(driven.did)


# --- deaths on this host -----------------------------------------------------------------------


def dies(driven: Driven, member: str = "b") -> list[object]:
    return [*driven.does(driven.machine.died(member, driven.now))]


def test_a_replica_that_died_on_this_host_goes_as_if_it_had_left() -> None:
    driven = pair(NOBODY)
    done = dies(driven)
    assert Write(Copies((A,))) in done
    assert (driven.machine.state, driven.machine.epoch) == (State.ALONE, 1)


def test_it_does_so_also_if_its_link_was_lost_before() -> None:
    driven = pair(NOBODY)
    driven.loses("b")
    assert driven.machine.state is State.SUSPENDED
    dies(driven)
    assert driven.machine.state is State.ALONE


def test_of_two_the_one_that_was_lost_is_dead_and_it_goes_on_with_the_other() -> None:
    driven = three(NOBODY)
    driven.loses("c")
    dies(driven, "c")
    assert driven.machine.state is State.SUSPENDED, "b has not that list"
    driven.confirms("b")
    assert (driven.machine.state, driven.machine.counted) == (State.LIVE, {"b"})


def test_with_continue_alone_an_epoch_begins_without_it() -> None:
    driven = three(NOBODY)
    driven.machine.options = replace(driven.machine.options, on_partition="continue-alone")
    [begin] = [each for each in dies(driven) if isinstance(each, Begin)]
    assert (begin.epoch, {each.member for each in begin.copies}) == (2, {"a", "c"})
    assert "b" not in driven.machine.followers


def test_a_death_says_nothing_where_voters_are_or_of_one_that_does_not_count() -> None:
    assert not dies(pair())
    assert not dies(Driven(NOBODY))
    driven = Driven(NOBODY)
    driven.machine.copies = (A, B)
    assert not dies(driven)
    driven.machine.copies, driven.machine.counted = (A,), frozenset("b")
    assert not dies(driven)
    driven = pair(NOBODY)
    driven.machine.options = replace(driven.machine.options, on_partition="continue-alone")
    driven.machine.granted = Grant(2, "a", (A,))
    assert not dies(driven)


# --- time --------------------------------------------------------------------------------------


def test_a_replica_that_is_silent_is_dropped_after_its_time() -> None:
    driven = pair(replica_timeout=1.0)
    driven.now = 12.0
    driven.writes()
    assert driven.machine.deadline <= 13.0
    for now in (12.5, 12.9):
        assert not told(driven.ticks(now), "b")
    assert Dropped("no progress") in told(driven.ticks(13.0), "b")
    assert driven.machine.state is State.SUSPENDED


def test_what_it_lacks_for_long_does_not_count_from_before_it_lacked_it() -> None:
    driven = pair(replica_timeout=1.0)
    driven.now = 12.0
    driven.writes()
    driven.now = 12.9
    driven.writes()
    assert Dropped("no progress") in told(driven.ticks(13.0), "b")


def test_one_that_had_all_has_its_time_for_the_first_record_of_an_epoch() -> None:
    """It was dropped at once if nothing had been written for a while."""
    driven = three()
    driven.ticks(20.0)
    driven.loses("c")
    wins(driven)
    assert not told(driven.ticks(20.9), "b")
    assert driven.machine.state is State.LIVE
    assert Dropped("no progress") in told(driven.ticks(21.0), "b")


def test_a_newcomer_has_the_time_of_a_sync() -> None:
    driven = Driven(sync_timeout=30.0, replica_timeout=1.0)
    driven.links("b")
    driven.joins("b")
    assert not told(driven.ticks(39.9), "b")
    assert Dropped("no progress") in told(driven.ticks(40.0), "b")
    assert driven.machine.state is State.ALONE


def test_who_is_leaving_is_not_dropped_for_being_silent() -> None:
    driven = pair(replica_timeout=1.0)
    driven.votes = False
    driven.hears("b", Leave())
    assert not told(driven.ticks(20.0), "b")


def test_a_lease_is_renewed_in_time() -> None:
    driven = Driven()
    assert driven.machine.deadline == 10.15
    assert not [each for each in driven.ticks(10.1) if isinstance(each, TellVoter)]
    assert [each for each in driven.ticks(10.15) if isinstance(each, TellVoter)]
