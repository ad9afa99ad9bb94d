"""How much of commands waits at a broker, or is being carried out, for one session."""

from __future__ import annotations

from dataclasses import replace

from shmbroker.core.codes import OK
from shmbroker.netbridge.remote.action import Action, Over, Perform, Say
from shmbroker.netbridge.remote.session import HEAD_BYTES, SessionLimits
from shmbroker.netbridge.wire.frame import Command, Seen
from shmbroker.netbridge.wire.words import Demand, Verb
from tests.support.session_ends import consuming, ends


def asks(number: int, size: int) -> Command:
    return Command(number, Verb.LOOK, 0, 0, 1, Demand.EFFECTIVE, -1, False, 0, False, bytes(size))


def numbers(did: list[Action]) -> list[int]:
    return [each.command.number for each in did if isinstance(each, Perform)]


def test_commands_that_are_not_answered_hold_up_the_next_ones() -> None:
    session = ends().session
    session.limits = SessionLimits(held=1000)
    for number in range(5):
        session.received(asks(number, 600))
        if number == 1:
            assert (len(session.pending), session.pending_bytes) == (2, 2 * (600 + HEAD_BYTES))
    assert len(session.pending) == 2
    session.done(0, OK)
    assert (len(session.pending), session.pending_bytes) == (2, 2 * (600 + HEAD_BYTES))


def test_commands_without_a_body_are_counted_as_well() -> None:
    session = ends().session
    session.limits = SessionLimits(held=10 * HEAD_BYTES)
    for number in range(20):
        session.received(asks(number, 0))
    assert len(session.pending) == 10
    for number in range(20):
        session.done(number, OK)
    assert (session.pending, session.pending_bytes, session.held_bytes) == ({}, 0, 0)


def test_one_command_may_be_larger_than_all_that_may_wait() -> None:
    of = ends()
    of.session.limits = SessionLimits(held=1000)
    of.broker_does(of.session.received(asks(0, 5000)))
    assert (of.broken(), len(of.performed)) == ([], 1)


def test_what_settles_or_takes_does_not_wait_for_what_waits_for_room() -> None:
    of = consuming()
    first = of.session.seen
    of.deliver(2)
    of.session.limits = SessionLimits(held=1000)
    large = replace(asks(first, 5000), verb=Verb.PUBLISH)
    done: list[int] = []
    for command in (
        large, asks(first + 1, 0), replace(asks(first + 2, 0), verb=Verb.ACK),
        replace(asks(first + 3, 0), verb=Verb.GET), asks(first + 4, 0),
    ):  # fmt: skip
        done += numbers(of.session.received(command))
    assert done == [first, first + 2, first + 3]
    assert of.session.room(2) != (0, 0)
    assert numbers(of.session.done(first, OK)) == [first + 1, first + 4]


def test_while_nothing_is_seen_all_wait_and_go_on_in_their_order() -> None:
    session = ends().session
    session.window = 100
    session.received(asks(0, 0))
    session.done(0, OK, body=bytes(100))
    verbs = (Verb.TEMPORARY_QUEUE, Verb.CONSUMER, Verb.LOOK, Verb.GET)
    for number, verb in enumerate(verbs, 1):
        assert session.received(replace(asks(number, 0), verb=verb)) == []
    assert numbers(session.received(Seen(1))) == [1, 2, 3, 4]


def test_nothing_is_performed_behind_the_end() -> None:
    """Also if all of it waits until the program says what it has seen."""
    session = ends().session
    session.window = 100
    session.received(asks(0, 0))
    session.done(0, OK, body=bytes(100))
    assert session.received(replace(asks(1, 0), verb=Verb.END)) == []
    assert session.received(asks(2, 0)) == []
    assert [type(each) for each in session.received(Seen(1))] == [Say, Over]
