"""Each cell of the table of states, and what goes with it."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.pair.machine import Accepted, CloseApplications, Foreign, Refused
from shmbroker.netbridge.pair.told import State
from tests.netbridge.pair.duo import BACKUP, OTHER, PRIMARY, Duo, started

ACTIVE, PASSIVE, PENDING = State.ACTIVE, State.PASSIVE, State.PENDING
SILENT = 5.1


def acting_backup() -> Duo:
    """The primary has died, and a client has asked the backup."""
    duo = started()
    duo.kill(PRIMARY)
    duo.wait(SILENT)
    assert duo.accepts(BACKUP)
    return duo


@pytest.mark.parametrize("order", [(PRIMARY, BACKUP), (BACKUP, PRIMARY)])
def test_both_start_in_any_order(order: tuple[str, str]) -> None:
    duo = started(*order)
    assert duo.states == {PRIMARY: ACTIVE, BACKUP: PASSIVE}
    assert duo.reasons(PRIMARY) == ["peer pending"]
    assert duo.reasons(BACKUP) == ["peer active"]


@pytest.mark.parametrize("name", [PRIMARY, BACKUP])
def test_pending_refuses_before_the_time_out(name: str) -> None:
    duo = started(name)
    duo.wait(4.9)
    assert duo.ask(name) == Refused(403, "pending")


def test_a_primary_that_hears_nothing_begins_with_a_client() -> None:
    duo = started(PRIMARY)
    duo.wait(SILENT)
    assert duo.states[PRIMARY] is PENDING, "the client is the vote"
    assert duo.accepts(PRIMARY)
    assert duo.reasons(PRIMARY) == ["client asked"]


def test_a_primary_alone_never_begins_with_none() -> None:
    duo = started(PRIMARY, accepts_pending=False)
    duo.wait(60)
    assert duo.ask(PRIMARY) == Refused(403, "pending")


def test_a_backup_alone_never_begins() -> None:
    duo = started(BACKUP)
    duo.wait(60)
    assert duo.ask(BACKUP) == Refused(403, "pending")


def test_pending_peer_passive_waits_to_be_told() -> None:
    duo = acting_backup()
    duo.cut()
    duo.start(PRIMARY)
    duo.heal()
    duo.deliver(PRIMARY)
    assert duo.states == {PRIMARY: PASSIVE, BACKUP: ACTIVE}


def test_active_stays_when_the_peer_starts() -> None:
    duo = acting_backup()
    duo.start(PRIMARY)
    duo.settle()
    assert duo.states == {PRIMARY: PASSIVE, BACKUP: ACTIVE}, "no failback"
    duo.wait(60)
    assert duo.states == {PRIMARY: PASSIVE, BACKUP: ACTIVE}


def test_passive_takes_over_with_silence_and_a_client() -> None:
    duo = started()
    duo.kill(PRIMARY)
    duo.wait(3600)
    assert duo.states[BACKUP] is PASSIVE, "silence alone is not enough"
    assert duo.accepts(BACKUP)
    assert duo.reasons(BACKUP)[-1] == "client asked"


def test_passive_refuses_while_the_peer_talks() -> None:
    duo = started()
    duo.wait(60)
    assert duo.ask(BACKUP) == Refused(403, "passive", "tcp://primary:1")


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_passive_broker_that_stood_still_listens_before_it_takes_over(is_linked: bool) -> None:
    """An application that waits is heard before the peer is, also when the link is made anew."""
    duo = started()
    duo.wait(2.0)
    duo.stand_still(7.0)
    if is_linked:
        duo.does(BACKUP, duo.brokers[BACKUP].linked(duo.now))
    assert duo.ask(BACKUP) == Refused(403, "passive", "tcp://primary:1")
    duo.wait(SILENT)
    assert duo.ask(BACKUP) == Refused(403, "passive", "tcp://primary:1"), "the peer has talked"


def test_a_passive_broker_that_stood_still_takes_over_if_it_hears_nothing_after_that() -> None:
    duo = started()
    duo.kill(PRIMARY)
    duo.stand_still(7.0)
    assert not duo.accepts(BACKUP)
    duo.wait(4.9)
    assert not duo.accepts(BACKUP)
    duo.wait(0.2)
    assert duo.accepts(BACKUP)


def test_a_peer_may_have_come_back_while_a_passive_broker_stood_still() -> None:
    """It was dead for long, and waited only as long as it takes to count this one as dead."""
    duo = started()
    duo.kill(PRIMARY)
    duo.wait(60)
    duo.stand_still(7.0)
    assert not duo.accepts(BACKUP)
    duo.wait(2 * SILENT)
    duo.stand_still(7.0)
    assert not duo.accepts(BACKUP), "each time that it was on time again"


def test_a_pending_primary_that_stood_still_listens_before_it_begins() -> None:
    duo = started(PRIMARY)
    duo.stand_still(7.0)
    assert duo.ask(PRIMARY) == Refused(403, "pending")
    duo.wait(SILENT)
    assert duo.accepts(PRIMARY)


@pytest.mark.parametrize("late", [0.5, 2.0, 3.0, 9.0])
def test_a_broker_that_is_always_late_takes_over_in_the_end(late: float) -> None:
    """It counts of each time what it would have waited; an application comes before that."""
    duo = started()
    duo.kill(PRIMARY)
    backup = duo.brokers[BACKUP]
    for turn in range(1, 13):
        duo.now = backup.deadline + late
        if turn % 4 == 0 and duo.accepts(BACKUP):
            return
        duo.does(BACKUP, backup.tick(duo.now))
    pytest.fail(f"silent for {backup.silence(duo.now)} s")


def test_a_broker_that_stands_still_again_and_again_takes_over_in_between() -> None:
    duo = started()
    duo.kill(PRIMARY)
    for _ in range(5):
        duo.stand_still(4.0)
        duo.wait(2.0)
        if duo.accepts(BACKUP):
            return
    pytest.fail("it waits for ever")


def test_passive_goes_on_at_once_when_the_peer_was_restarted() -> None:
    """`ha reset` of a pair: restart the acting backup."""
    duo = acting_backup()
    duo.start(PRIMARY)
    duo.settle()
    duo.kill(BACKUP)
    duo.start(BACKUP)
    duo.settle()
    assert duo.states == {PRIMARY: ACTIVE, BACKUP: PASSIVE}
    assert duo.reasons(PRIMARY)[-1] == "peer pending"


def test_both_passive() -> None:
    """The backup yields while it still believes that the primary is."""
    duo = acting_backup()
    duo.start(PRIMARY)
    duo.settle()
    backup = duo.brokers[BACKUP]
    backup.state = PASSIVE
    duo.wait(SILENT)
    assert duo.states == {PRIMARY: ACTIVE, BACKUP: PASSIVE}
    assert duo.reasons(PRIMARY)[-1] == "peer passive"


@pytest.mark.parametrize("name", [PRIMARY, BACKUP])
def test_a_planned_stop_needs_no_time_out(name: str) -> None:
    duo = started() if name == PRIMARY else acting_backup()
    if name == BACKUP:
        duo.start(PRIMARY)
        duo.settle()
    duo.stop(name)
    duo.settle()
    assert duo.states == {OTHER[name]: PASSIVE}, "a client is still needed"
    assert duo.accepts(OTHER[name])


def in_conflict(**options: bool) -> Duo:
    duo = started(**options)
    duo.cut()
    duo.wait(SILENT)
    assert duo.accepts(BACKUP)
    assert duo.accepts(PRIMARY)
    duo.done.clear()
    duo.heal()
    duo.settle()
    return duo


def test_a_conflict_stops_both() -> None:
    duo = in_conflict()
    assert set(duo.states.values()) == {State.CONFLICT}
    closed = {who for who, action in duo.done if action == CloseApplications()}
    assert closed == {PRIMARY, BACKUP}
    duo.wait(3600)
    assert set(duo.states.values()) == {State.CONFLICT}
    assert duo.ask(PRIMARY) == duo.ask(BACKUP) == Refused(403, "conflict")


@pytest.mark.parametrize("name", [PRIMARY, BACKUP])
def test_a_reset_of_either_ends_a_conflict(name: str) -> None:
    duo = in_conflict()
    duo.does(name, duo.brokers[name].reset(duo.now))
    duo.settle()
    assert duo.states == {PRIMARY: ACTIVE, BACKUP: PASSIVE}


@pytest.mark.parametrize("name", [PRIMARY, BACKUP])
def test_a_restart_of_either_ends_a_conflict(name: str) -> None:
    duo = in_conflict()
    duo.kill(name)
    duo.start(name)
    duo.settle()
    assert sorted(state.value for state in duo.states.values()) == ["active", "passive"]


def test_who_was_reset_during_a_second_cut_goes_on() -> None:
    duo = in_conflict()
    duo.cut()
    duo.does(PRIMARY, duo.brokers[PRIMARY].reset(duo.now))
    duo.wait(SILENT)
    assert duo.accepts(PRIMARY)
    duo.heal()
    duo.settle()
    assert duo.states == {PRIMARY: ACTIVE, BACKUP: PASSIVE}


def test_what_was_said_before_a_conflict_does_not_end_it() -> None:
    duo = started()
    duo.cut()
    duo.wait(SILENT)
    assert duo.accepts(BACKUP)
    duo.heal()
    duo.deliver(PRIMARY)
    assert duo.states[PRIMARY] is State.CONFLICT
    duo.does(BACKUP, duo.brokers[BACKUP].linked(duo.now))
    duo.deliver(PRIMARY)
    assert duo.states[PRIMARY] is State.CONFLICT, "active, as it was before"


def test_primary_wins() -> None:
    duo = in_conflict(primary_wins=True)
    assert duo.states == {PRIMARY: ACTIVE, BACKUP: PASSIVE}
    assert (BACKUP, CloseApplications()) in duo.done
    assert (PRIMARY, CloseApplications()) not in duo.done


def test_another_vhost_is_refused_with_one_line() -> None:
    duo = started()
    refused = duo.ask(PRIMARY, "billing")
    assert refused == Refused(402, "this pair serves vhost /, not billing")
    assert duo.ask(PRIMARY, "billing") == refused
    assert [each for _, each in duo.done if isinstance(each, Foreign)] == [Foreign("billing", "/")]


def test_another_vhost_is_no_vote() -> None:
    duo = started()
    duo.kill(PRIMARY)
    duo.wait(SILENT)
    duo.ask(BACKUP, "billing")
    assert duo.states[BACKUP] is PASSIVE
    assert duo.ask(BACKUP) == Accepted()
