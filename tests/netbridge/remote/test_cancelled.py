"""Publishes that are cancelled: nobody has a token of them, so none stays open for ever.  Of takes
that are cancelled the broker is told.  Neither holds up a close."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.remote.call import STANDING
from shmbroker.netbridge.remote.numbers import OPEN_MAX
from shmbroker.netbridge.remote.options import Mode
from shmbroker.netbridge.remote.outcome import End, Why
from shmbroker.netbridge.remote.phase import Phase
from shmbroker.netbridge.wire.frame import Attached, Command
from shmbroker.netbridge.wire.words import Demand, Verb
from tests.support.session_ends import Ends, ends


def publish(of: Ends) -> int:
    return of.call(Verb.PUBLISH, target=1, body=b"m")


def cancelled(of: Ends, count: int) -> None:
    for _ in range(count):
        of.does(of.client.cancel(publish(of), of.now))


def made_again(of: Ends) -> None:
    of.broker_dies()
    of.does(of.client.reconnect(of.now))
    of.connect()


@pytest.mark.parametrize("mode", Mode)
def test_those_whose_answers_are_lost_with_the_session_are_open_no_more(mode: Mode) -> None:
    of = ends(mode)
    of.call(Verb.PRODUCER, target=1)
    cancelled(of, OPEN_MAX)
    assert of.client.doubt.is_open
    made_again(of)
    assert not of.client.doubt.is_open
    call = publish(of)
    made, said = of.performed
    assert (made.verb, made.value) == (Verb.PRODUCER, OPEN_MAX + 1), "what is below will not come"
    of.answer(said)
    outcome = of.outcome(call)
    assert outcome is not None
    assert outcome.end is End.OK


@pytest.mark.parametrize("is_on_its_way", [False, True])
def test_one_whose_token_a_program_has_stays_open_if_asking_again_is_cancelled(
    is_on_its_way: bool,
) -> None:
    of = ends()
    of.call(Verb.PRODUCER, target=1)
    first = of.call(Verb.PUBLISH, timeout=1.0, target=1, body=b"m")
    of.now += 1.0
    of.does(of.client.tick(of.now))
    outcome = of.outcome(first)
    assert outcome is not None
    assert outcome.token is not None
    if not is_on_its_way:
        made_again(of)
    again = of.client.next_id()
    of.does(of.client.retry(outcome.token, again, of.now))
    of.does(of.client.cancel(again, of.now))
    made_again(of)
    of.does(of.client.retry(outcome.token, of.client.next_id(), of.now))
    said = of.performed[-1]
    assert (said.verb, said.value, said.repeated) == (Verb.PUBLISH, 1, True)


def test_one_that_is_cancelled_while_its_broker_is_away_is_open_no_more() -> None:
    of = ends()
    of.call(Verb.PRODUCER, target=1)
    first = publish(of)
    of.broker_dies()
    of.does(of.client.cancel(first, of.now))
    of.connect()
    assert not of.client.doubt.is_open


def waits_to_be_said_again(of: Ends) -> None:
    """Its broker does not know the session any more, and has not made another yet."""
    of.broker_dies()
    of.link += 1
    of.does(of.client.connected(of.now))
    of.does(of.client.received(Attached(False, 0, 5000), of.now))
    assert of.client.phase is Phase.ATTACHING


def test_those_that_are_cancelled_while_they_wait_to_be_said_again_are_open_no_more() -> None:
    of = ends()
    of.call(Verb.PRODUCER, target=1)
    calls = [publish(of) for _ in range(OPEN_MAX)]
    waits_to_be_said_again(of)
    for call in calls:
        of.does(of.client.cancel(call, of.now))
    assert not of.client.doubt.is_open
    of.does(of.client.lost(of.now))
    of.connect()
    publish(of)
    said = of.performed[-1]
    assert (said.verb, said.value) == (Verb.PUBLISH, OPEN_MAX + 1)


def test_the_broker_is_told_that_one_will_not_be_said_again() -> None:
    of = ends()
    of.call(Verb.PRODUCER, target=1)
    publish(of)
    cancelled_one = of.call(Verb.PUBLISH, target=1, count=3, body=b"m")
    last = publish(of)
    waits_to_be_said_again(of)
    of.does(of.client.cancel(cancelled_one, of.now))
    of.does(of.client.lost(of.now))
    of.connect()
    assert [(each.verb, each.value, each.count) for each in of.performed[1:]] == [
        (Verb.PUBLISH, 1, 1), (Verb.PUBLISH, 5, 1), (Verb.DECIDED, 2, 3),
    ]  # fmt: skip
    of.answer(of.performed[2])
    outcome = of.outcome(last)
    assert outcome is not None
    assert outcome.end is End.OK


def test_the_broker_is_told_that_nobody_waits_for_a_message_any_more() -> None:
    of = ends()
    taking, late = of.call(Verb.GET, target=3), of.call(Verb.GET, timeout=1.0, target=4)
    of.does(of.client.cancel(taking, of.now))
    of.now += 1.0
    of.does(of.client.tick(of.now))
    assert [(each.verb, each.target) for each in of.performed] == [
        (Verb.GET, 3), (Verb.GET, 4), (Verb.LEAVE, 3), (Verb.LEAVE, 4),
    ]  # fmt: skip
    assert of.outcome(late) is not None


@pytest.mark.parametrize("verb", STANDING)
def test_what_was_to_be_opened_is_left(verb: Verb) -> None:
    of = ends()
    of.loses_to_program = True
    of.does(of.client.cancel(of.call(verb, target=3), of.now))
    assert [(each.verb, each.target) for each in of.performed] == [(verb, 3), (Verb.LEAVE, 3)]
    assert not any((of.client.standing, of.client.producers, of.client.consumers))
    assert not of.session.flows


def test_a_consumer_that_is_left_before_it_is_open_has_no_credit() -> None:
    session = ends().session
    for verb in (Verb.CONSUMER, Verb.LEAVE):
        said = Command(session.seen, verb, 2, 0, 1, Demand.EFFECTIVE, 0, False, 0, False, b"")
        session.received(said)
    for command in tuple(session.pending):
        session.done(command, 0)
    assert not session.flows


def test_a_take_that_was_not_said_is_not_left() -> None:
    of = ends()
    of.is_up = False
    of.does(of.client.lost(of.now))
    of.does(of.client.cancel(of.call(Verb.GET, target=3), of.now))
    of.connect()
    assert of.performed == []


def test_a_close_ends_takes_and_waits_for_no_call_that_nobody_waits_for() -> None:
    of = ends()
    of.call(Verb.PRODUCER, target=1)
    cancelled(of, 1)
    of.does(of.client.cancel(of.call(Verb.REQUEST), of.now))
    taking, awaited = of.call(Verb.GET, target=3), of.call(Verb.DECLARE)
    of.does(of.client.close(of.now))
    outcome = of.outcome(taking)
    assert outcome is not None
    assert (outcome.end, outcome.why) == (End.FAILED, Why.CLOSED)
    for each in of.performed:
        if each.verb in (Verb.DECLARE, Verb.LEAVE):
            assert of.client.phase is Phase.UP, "what somebody waits for goes first"
            of.answer(each)
    assert of.outcome(awaited) is not None
    assert of.client.phase is Phase.CLOSED


def test_a_call_that_is_cancelled_while_a_close_waits_for_it_lets_it_go_on() -> None:
    of = ends()
    of.call(Verb.PRODUCER, target=1)
    call = publish(of)
    of.does(of.client.close(of.now))
    assert of.client.phase is Phase.UP
    of.does(of.client.cancel(call, of.now))
    assert of.client.phase is Phase.CLOSED
