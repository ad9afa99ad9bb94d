"""A session that its program closes: what it waits for, and what ends without an answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shmbroker.netbridge.remote.closing import SILENT_SECONDS
from shmbroker.netbridge.remote.outcome import End, Why
from shmbroker.netbridge.remote.phase import Phase
from shmbroker.netbridge.wire.words import Verb
from tests.support.session_ends import Ends, consuming, ends


def producing() -> Ends:
    of = ends()
    of.call(Verb.PRODUCER, target=1)
    of.performed.clear()
    return of


def publish(of: Ends) -> int:
    return of.call(Verb.PUBLISH, target=1, body=b"m", wait_ms=-1)


def close(of: Ends) -> None:
    of.does(of.client.close(of.now))


def passes(of: Ends, seconds: float) -> None:
    of.now += seconds
    of.does(of.client.tick(of.now))


def ended(of: Ends, call: int) -> tuple[End, Why]:
    outcome = of.outcome(call)
    assert outcome is not None, "it has not ended"
    return outcome.end, outcome.why


@pytest.mark.parametrize("verb", [Verb.PUBLISH, Verb.REQUEST, Verb.COMMIT])
def test_what_nobody_answers_ends_as_unknown_and_then_the_session(verb: Verb) -> None:
    of = producing()
    of.client.work(1)
    call = of.call(verb, target=1, value=int(verb is Verb.COMMIT), body=b"m", wait_ms=-1)
    close(of)
    passes(of, 0.9 * SILENT_SECONDS)
    assert of.client.phase is Phase.UP
    passes(of, 0.1 * SILENT_SECONDS)
    assert ended(of, call) == (End.UNKNOWN, Why.CLOSED)
    assert of.client.phase is Phase.CLOSED
    assert of.client.deadline == float("inf")


def test_as_long_as_answers_come_it_waits_for_them() -> None:
    of = producing()
    calls = [publish(of) for _ in range(4)]
    close(of)
    for command in tuple(of.performed):
        assert of.client.phase is Phase.UP
        passes(of, 0.9 * SILENT_SECONDS)
        of.answer(command)
    assert [ended(of, each)[0] for each in calls] == [End.OK] * 4
    assert of.client.phase is Phase.CLOSED


def test_what_is_called_behind_it_is_not_done() -> None:
    of = producing()
    first = publish(of)
    close(of)
    late = publish(of)
    assert ended(of, late) == (End.FAILED, Why.CLOSED)
    of.answer(of.performed[0])
    assert ended(of, first)[0] is End.OK
    assert of.client.phase is Phase.CLOSED


def test_a_message_may_be_settled_until_it_is_closed() -> None:
    of = consuming()
    of.deliver(2)
    of.call(Verb.LOOK)
    close(of)
    ack = of.call(Verb.ACK, value=0, generation=1)
    look, settled = of.performed
    of.answer(settled)
    of.answer(look)
    assert ended(of, ack)[0] is End.OK
    assert of.client.phase is Phase.CLOSED


def test_it_waits_for_the_next_broker_as_any_call_does() -> None:
    of = producing()
    call = publish(of)
    close(of)
    of.broker_dies()
    for _ in range(3):
        passes(of, SILENT_SECONDS)
    assert of.outcome(call) is None
    of.connect()
    passes(of, 0.9 * SILENT_SECONDS)
    of.answer(of.performed[-1])
    assert ended(of, call)[0] is End.OK
    assert of.client.phase is Phase.CLOSED


def test_of_which_nothing_is_open_it_does_not_wait_for_a_broker_that_is_away() -> None:
    of = producing()
    of.broker_dies()
    close(of)
    passes(of, 0.9 * SILENT_SECONDS)
    assert of.client.phase is Phase.CONNECTING
    passes(of, 0.1 * SILENT_SECONDS)
    assert of.client.phase is Phase.CLOSED
    assert of.client.deadline == float("inf")


@pytest.mark.parametrize("seconds", [0.5, 3 * SILENT_SECONDS])
def test_a_broker_that_goes_away_once_the_end_was_said_is_not_waited_for_longer(
    seconds: float,
) -> None:
    """It is found at once that it has, or by silence."""
    of = producing()
    of.loses_to_broker = True
    close(of)
    passes(of, seconds)
    of.broker_dies()
    passes(of, SILENT_SECONDS)
    assert of.client.phase is Phase.CLOSED
    assert of.client.deadline == float("inf")


@pytest.mark.parametrize("verb", [Verb.GET, Verb.CONSUMER])
def test_a_message_that_comes_for_a_take_while_the_link_is_away_goes_back(verb: Verb) -> None:
    of = ends()
    of.loses_to_program = True
    take = of.call(verb, target=2, value=4, wait_ms=-1)
    of.cut()
    of.does(of.client.cancel(take, of.now))  # as close does with a get
    close(of)
    passes(of, 2 * SILENT_SECONDS)
    assert of.client.phase is Phase.CONNECTING
    if verb is Verb.GET:
        of.answer(of.performed[0], takes=1)
    else:
        of.deliver(2)
    of.connect()
    passes(of, SILENT_SECONDS)
    assert of.client.phase is Phase.CLOSED
    assert of.given_back() == [0]


def test_what_it_has_in_hand_is_given_back_when_its_broker_is_there_again() -> None:
    of = consuming()
    of.deliver(2)
    of.cut()
    close(of)
    passes(of, 2 * SILENT_SECONDS)
    assert of.client.phase is Phase.CONNECTING
    of.connect()
    assert of.client.phase is Phase.CLOSED
    assert of.given_back() == [0]


@pytest.mark.parametrize("more", [[], [Verb.LEAVE], [Verb.PUBLISH, Verb.LEAVE]])
def test_it_ends_beside_a_message_that_fills_all_windows(more: list[Verb]) -> None:
    of = producing()
    of.client.calls.together = 50
    calls = [publish(of), *(of.call(verb, target=1, body=b"m") for verb in more)]
    close(of)
    passes(of, SILENT_SECONDS)
    assert of.client.phase is Phase.CLOSED
    assert all(of.outcome(each) for each in calls)


def test_it_ends_however_much_waits_at_the_broker() -> None:
    of = producing()
    of.session.limits = replace(of.session.limits, held=300)
    calls = [publish(of) for _ in range(7)]
    assert len(of.performed) == 5
    close(of)
    passes(of, SILENT_SECONDS)
    assert of.client.phase is Phase.CLOSED
    assert {ended(of, each) for each in calls} == {(End.UNKNOWN, Why.CLOSED)}


def test_what_was_called_before_is_said_before() -> None:
    """Also if it waits behind something that nobody waits for."""
    of = producing()
    of.client.calls.together = 50
    first, second = publish(of), publish(of)
    of.does(of.client.cancel(first, of.now))
    close(of)
    of.answer(of.performed[0])
    of.answer(of.performed[1])
    assert ended(of, second)[0] is End.OK
    assert of.client.phase is Phase.CLOSED


@pytest.mark.parametrize("publishes", [True, False])
def test_a_loop_that_goes_on_keeps_nothing_open(publishes: bool) -> None:
    """Its acks are answered, and others are on their way."""
    of = consuming(prefetch=100)
    of.call(Verb.PRODUCER, target=1)
    of.performed.clear()
    of.deliver(2, 20)
    call = publish(of) if publishes else of.call(Verb.ACK, value=19, generation=1)
    settled = [of.call(Verb.ACK, value=0, generation=1)]
    close(of)
    for number in (1, 2):
        settled.append(of.call(Verb.ACK, value=number, generation=1))
        of.answer(of.performed[number])
        passes(of, 0.9 * SILENT_SECONDS)
    assert of.client.phase is Phase.CLOSED
    assert of.outcome(call)
    assert ended(of, settled[0])[0] is End.OK
