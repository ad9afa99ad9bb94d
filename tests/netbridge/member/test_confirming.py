"""What a live confirms, for how long, and when it may do so ahead of its own disk."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.election.question import Copy, Grant
from shmbroker.netbridge.member.core import NEVER
from shmbroker.netbridge.member.standing import Copies, State
from shmbroker.netbridge.wire.words import Level
from tests.netbridge.member.driven import NOBODY, A, B, Driven, pair, three, written

# --- what is confirmed -------------------------------------------------------------------------


def test_a_confirm_waits_for_the_disk_and_for_each_replica_that_counts() -> None:
    driven = three()
    machine = driven.machine
    before = machine.end
    driven.syncs = False
    driven.writes()
    driven.confirms("b")
    assert machine.confirmed(driven.now) == before
    driven.confirms("c")
    assert machine.confirmed(driven.now) == before
    driven.catches_up()
    assert machine.confirmed(driven.now) == machine.end == before + 1


def test_nothing_is_confirmed_by_one_that_is_suspended() -> None:
    driven = pair()
    driven.loses("b")
    machine = driven.machine
    assert (machine.state, machine.confirmed(driven.now)) == (State.SUSPENDED, 0)
    driven = pair()
    driven.machine.state = State.SUSPENDED
    assert driven.machine.confirmed(driven.now) == 0, "though both have all"


def test_nothing_is_confirmed_before_the_first_record_of_an_epoch_is_synced() -> None:
    driven = pair()
    driven.syncs = False
    driven.writes()
    driven.loses("b")
    driven.does(driven.machine.continues(driven.now))
    machine = driven.machine
    machine.state, machine.counted = State.ALONE, frozenset()
    assert machine.confirmed(driven.now) == 0
    driven.catches_up()
    assert machine.confirmed(driven.now) == machine.end


def test_a_frame_is_written_while_it_may_be_confirmed_later() -> None:
    driven = pair()
    machine = driven.machine
    assert machine.may_write()
    driven.loses("b")
    assert machine.may_write()
    driven.votes = False
    driven.links("b")
    driven.joins("b")
    driven.does(machine.hands_over("b", driven.now))
    assert machine.state is State.HANDING_OVER
    assert not machine.may_write()


def test_a_frame_of_programs_is_no_last_record() -> None:
    driven = Driven()
    driven.writes()
    machine = driven.machine
    assert (machine.final_at, machine.handed_to, machine.is_parked) == (0, "", False)


def test_copies_that_are_lacking() -> None:
    driven = Driven(min_insync=2)
    assert driven.machine.lacks_copies
    driven.follows("b")
    assert not driven.machine.lacks_copies


def test_the_level_that_holds() -> None:
    driven = Driven()
    assert driven.machine.effective_level is Level.DISK
    driven.follows("b")
    assert driven.machine.effective_level is Level.DISK_AND_REPLICATED


# --- for how long ------------------------------------------------------------------------------


def test_a_lease_counts_if_somebody_else_could_be_granted_an_epoch() -> None:
    for driven in (Driven(), pair(NOBODY)):
        assert driven.machine.is_valid(1000.0), "nobody else is on the list, or can be asked"
        assert driven.machine.serves_until(1000.0) == NEVER
    driven = pair()
    machine = driven.machine
    assert machine.is_valid(10.29)
    assert not machine.is_valid(10.3)
    assert machine.is_doubtful(10.3)
    assert not machine.is_doubtful(10.29)


def test_with_leases_off_nothing_is_flagged() -> None:
    driven = pair(lease=0.0)
    assert not driven.machine.is_valid(10.0)
    assert not driven.machine.is_doubtful(10.0)
    assert driven.machine.serves_until(10.0) == NEVER


def test_consumers_are_served_while_the_lease_is_valid() -> None:
    driven = pair()
    assert driven.machine.serves_until(10.1) == 10.3


def test_without_voters_they_are_served_on_while_all_replicas_follow() -> None:
    driven = pair()
    machine = driven.machine
    driven.does(machine.voter_down("w"))
    assert not machine.is_valid(10.0)
    for now in (10.2, 10.4, 10.6, 10.8):
        driven.ticks(now)
    assert machine.serves_until(10.8) == pytest.approx(11.1)
    assert machine.serves_until(11.15) == 0.0, "it may have been paused since its last tick"
    machine.followers.clear()
    assert machine.serves_until(10.8) < 0.0, "its replica may be live"


def test_who_was_paused_serves_nobody_until_it_knows_who_follows() -> None:
    driven = pair()
    driven.does(driven.machine.voter_down("w"))
    driven.ticks(10.4)
    assert driven.machine.serves_until(10.5) == 0.0
    for now in (10.6, 10.8, 11.0):
        driven.ticks(now)
    assert driven.machine.serves_until(11.1) == pytest.approx(11.4)


def test_one_that_is_suspended_serves_nobody() -> None:
    driven = pair()
    driven.loses("b")
    assert driven.machine.serves_until(10.1) == 0.0


def test_a_live_waits_for_its_backups_after_a_start_if_it_is_told_to() -> None:
    driven = Driven(backup_timeout=5.0)
    machine = driven.machine
    assert machine.is_withholding(14.9)
    assert machine.confirmed(14.9) == 0
    assert not machine.is_withholding(15.0)
    assert machine.serves_until(14.9) == 0.0
    driven.follows("b")
    assert not machine.is_withholding(10.0), "all of them are in sync"


def test_it_waits_on_until_there_are_as_many_as_there_may_be() -> None:
    driven = Driven(backup_timeout=5.0, max_replicas=2)
    driven.follows("b")
    assert driven.machine.is_withholding(10.0)
    driven.machine.serves_already = False
    assert driven.machine.is_withholding(100.0), "it does not serve yet"


def test_without_that_nothing_waits() -> None:
    driven = Driven()
    driven.machine.serves_already = False
    assert not driven.machine.is_withholding(10.0)


# --- confirms ahead of its own disk ------------------------------------------------------------


def test_confirms_run_ahead_of_the_disk_when_the_list_says_so_and_the_voters_know() -> None:
    driven = pair()
    machine = driven.machine
    assert not machine.may_run_ahead
    driven.votes = False
    here = Copy("a", "boot a")
    assert written(driven.does(machine.wants_replicated(10.0))) == [Copies((here, B))]
    driven.confirms("b")
    assert here in machine.listed
    assert not machine.may_run_ahead, "the voters do not know yet"
    driven.votes = True
    driven.ticks(10.2)
    assert machine.may_run_ahead
    assert not written(driven.does(machine.wants_replicated(10.2))), "the list says so"
    machine.granted = Grant(2, "a", (A,))
    assert not machine.may_run_ahead
    machine.granted = None
    machine.copies = (A, B)
    assert not machine.may_run_ahead
    machine.copies, machine.listed = (here, B), (A, B)
    assert not machine.may_run_ahead


def test_confirms_run_ahead_where_nobody_can_be_asked() -> None:
    driven = pair(NOBODY)
    driven.does(driven.machine.wants_replicated(10.0))
    assert not driven.machine.may_run_ahead, "its replica has not that list yet"
    driven.confirms("b")
    assert driven.machine.may_run_ahead


def test_the_list_does_not_say_so_of_one_that_is_alone_or_whose_epoch_ends() -> None:
    alone = Driven()
    assert not alone.does(alone.machine.wants_replicated(10.0))
    driven = pair()
    driven.machine.granted = Grant(2, "a", (A,))
    assert not driven.does(driven.machine.wants_replicated(10.0))
    driven.machine.granted = None
    driven.machine.state = State.HANDING_OVER
    assert not driven.does(driven.machine.wants_replicated(10.0))
    driven.machine.state, driven.machine.boot = State.LIVE, ""
    assert not driven.does(driven.machine.wants_replicated(10.0)), "its host tells no boot"
