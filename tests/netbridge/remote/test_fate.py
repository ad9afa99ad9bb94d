"""What becomes of each call at a loss: every row, in both modes, with both ends of the session."""

from __future__ import annotations

import pytest

from shmbroker.core.codes import ENDED, FULL, REVOKED, UNCONFIRMED
from shmbroker.netbridge.remote.client import Client
from shmbroker.netbridge.remote.fate import WHEN_SENT
from shmbroker.netbridge.remote.options import Mode
from shmbroker.netbridge.remote.outcome import End, Outcome, Token, Why
from shmbroker.netbridge.wire.words import Verb
from tests.support.session_ends import Ends, ends, options

AUTOMATIC, APPLICATION = Mode.AUTOMATIC, Mode.APPLICATION
PRODUCER, CONSUMER = 1, 2


A, B = b"a" * 16, b"b" * 16


def at_node(node: bytes) -> Ends:
    of = Ends(Client(b"s" * 16, options()))
    of.does(of.client.start(0.0))
    return of.connect(node)


def opened(mode: Mode) -> Ends:
    """With a producer, and a consumer that has one delivery in hand."""
    of = ends(mode)
    of.call(Verb.PRODUCER, target=PRODUCER)
    of.call(Verb.CONSUMER, target=CONSUMER, value=10)
    of.deliver(CONSUMER)
    of.performed.clear()
    return of


def told(of: Ends, call: int) -> Outcome:
    outcome = of.outcome(call)
    assert outcome is not None, "it has not ended"
    return outcome


def fails_over(of: Ends) -> None:
    of.broker_dies()
    of.performed.clear()
    of.connect()


def deadline_passes(of: Ends) -> None:
    of.now = of.client.deadline
    of.does(of.client.tick(of.now))


def given_up(of: Ends, mode: Mode) -> None:
    """After the deadline, or at once where the program decides."""
    of.broker_dies()
    if mode is AUTOMATIC:
        deadline_passes(of)


def called_during_loss(of: Ends, verb: Verb) -> int:
    """Not yet handed over."""
    of.broker_dies()
    return of.call(verb, target=PRODUCER, body=b"x")


def test_every_verb_has_its_row() -> None:
    assert set(WHEN_SENT) == set(Verb)


# --- publish not yet handed over ------------------------------------------------------------------


def test_publish_not_handed_over_automatic_is_sent_once() -> None:
    of = opened(AUTOMATIC)
    call = called_during_loss(of, Verb.PUBLISH)
    of.connect()
    (command,) = [each for each in of.performed if each.verb is Verb.PUBLISH]
    of.answer(command, value=7)
    assert (told(of, call).end, told(of, call).value) == (End.OK, 7)


def test_publish_not_handed_over_after_the_deadline_failed() -> None:
    of = opened(AUTOMATIC)
    call = called_during_loss(of, Verb.PUBLISH)
    deadline_passes(of)
    assert told(of, call).end is End.FAILED


def test_publish_not_handed_over_application_failed() -> None:
    of = opened(APPLICATION)
    call = called_during_loss(of, Verb.PUBLISH)
    assert told(of, call).end is End.FAILED


# --- publish sent, not confirmed ------------------------------------------------------------------


def test_publish_sent_automatic_is_sent_again_with_its_number() -> None:
    of = opened(AUTOMATIC)
    call = of.call(Verb.PUBLISH, target=PRODUCER, body=b"x")
    (first,) = of.performed
    fails_over(of)
    (again,) = [each for each in of.performed if each.verb is Verb.PUBLISH]
    assert (again.value, again.body, again.repeated) == (first.value, first.body, True)
    of.answer(again)
    assert told(of, call).end is End.OK


@pytest.mark.parametrize("mode", Mode)
def test_publish_sent_and_given_up_is_unknown_with_a_token(mode: Mode) -> None:
    of = opened(mode)
    call = of.call(Verb.PUBLISH, target=PRODUCER, body=b"x")
    given_up(of, mode)
    outcome = told(of, call)
    assert outcome.end is End.UNKNOWN
    assert outcome.token is not None
    of.does(of.client.reconnect(of.now))
    of.connect()
    number = of.client.next_id()
    of.does(of.client.retry(outcome.token, number, of.now))
    again = of.performed[-1]
    assert (again.verb, again.value, again.body) == (Verb.PUBLISH, 1, b"x")
    of.answer(again)
    assert told(of, number).end is End.OK


def test_what_is_unconfirmed_is_asked_again_for_as_long_as_its_program_says() -> None:
    of = opened(AUTOMATIC)
    call = of.call(Verb.PUBLISH, target=PRODUCER, body=b"x", wait_ms=60_000)
    of.answer(of.performed[-1], UNCONFIRMED)
    token = told(of, call).token
    assert token is not None
    of.does(of.client.retry(token, of.client.next_id(), of.now, wait_ms=50, timeout=1.0))
    assert (of.performed[-1].repeated, of.performed[-1].wait_ms) == (True, 50)
    assert of.client.deadline == of.now + 1.0


def test_publish_sent_that_waits_again_and_is_given_up_is_unknown_not_failed() -> None:
    of = opened(AUTOMATIC)
    call = of.call(Verb.PUBLISH, target=PRODUCER, body=b"x")
    of.broker_dies()
    of.link += 1
    of.is_up = of.loses_to_broker = True
    of.does(of.client.connected(of.now))
    deadline_passes(of)
    assert told(of, call).end is End.UNKNOWN


# --- ack in flight --------------------------------------------------------------------------------


def acked(of: Ends) -> int:
    return of.call(Verb.ACK, value=0, generation=of.client.generation, body=b"place")


@pytest.mark.parametrize(
    ("code", "end", "why"),
    [(0, End.OK, Why.DONE), (REVOKED, End.FAILED, Why.REVOKED)],
)
def test_ack_in_flight_automatic_is_repeated(code: int, end: End, why: Why) -> None:
    of = opened(AUTOMATIC)
    call = acked(of)
    fails_over(of)
    (again,) = [each for each in of.performed if each.verb is Verb.ACK]
    assert (again.repeated, again.body) == (True, b"place")
    of.answer(again, code)
    assert (told(of, call).end, told(of, call).why) == (end, why)


@pytest.mark.parametrize("mode", Mode)
def test_ack_in_flight_given_up_is_unknown(mode: Mode) -> None:
    of = opened(mode)
    call = acked(of)
    given_up(of, mode)
    assert told(of, call).end is End.UNKNOWN


@pytest.mark.parametrize("verb", [Verb.ACK, Verb.REJECT])
def test_ack_in_flight_is_unknown_at_another_node_where_its_place_is_that_of_another_message(
    verb: Verb,
) -> None:
    of = at_node(A)
    of.call(Verb.CONSUMER, target=CONSUMER, value=10)
    of.deliver(CONSUMER)
    call = of.call(verb, value=0, generation=of.client.generation, body=b"place")
    of.broker_dies()
    of.connect(A)
    assert [each.verb for each in of.performed if each.repeated][-1] is verb, "it is the same node"
    of.broker_dies()
    of.connect(B)
    assert told(of, call).end is End.UNKNOWN
    assert verb not in [each.verb for each in of.performed]


def test_ack_that_was_not_sent_automatic_is_revoked() -> None:
    of = opened(AUTOMATIC)
    of.broker_dies()
    call = acked(of)
    of.connect()
    assert told(of, call).why is Why.REVOKED
    assert not [each for each in of.performed if each.verb is Verb.ACK]


# --- received, not acked --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", Mode)
def test_received_not_acked_the_old_ack_is_revoked(mode: Mode) -> None:
    of = opened(mode)
    generation = of.client.generation
    if mode is AUTOMATIC:
        fails_over(of)
    else:
        given_up(of, mode)
    call = of.call(Verb.ACK, value=0, generation=generation)
    assert told(of, call).why is Why.REVOKED


# --- transactions ---------------------------------------------------------------------------------


def test_transaction_with_work_reattached_goes_on() -> None:
    of = opened(AUTOMATIC)
    of.client.work(1)
    of.cut()
    of.connect()
    call = of.call(Verb.COMMIT, value=1)
    of.answer(of.performed[-1])
    assert told(of, call).end is End.OK


def test_transaction_with_work_failover_is_rolled_back_and_the_session_usable() -> None:
    of = opened(AUTOMATIC)
    of.client.work(1)
    fails_over(of)
    call = of.call(Verb.COMMIT, value=1)
    assert (told(of, call).end, told(of, call).why) == (End.FAILED, Why.ROLLED_BACK)
    of.client.work(1)
    again = of.call(Verb.COMMIT, value=1)
    of.answer(of.performed[-1])
    assert told(of, again).end is End.OK


@pytest.mark.parametrize("mode", Mode)
def test_transaction_with_work_given_up_failed(mode: Mode) -> None:
    of = opened(mode)
    of.client.work(1)
    given_up(of, mode)
    call = of.call(Verb.COMMIT, value=1)
    assert told(of, call).end is End.FAILED


@pytest.mark.parametrize("mode", Mode)
def test_transaction_without_work_commits(mode: Mode) -> None:
    of = opened(mode)
    given_up(of, mode)
    call = of.call(Verb.COMMIT, value=1)
    assert told(of, call).end is End.OK


@pytest.mark.parametrize(("code", "why"), [(0, Why.DONE), (ENDED, Why.ROLLED_BACK)])
def test_commit_in_flight_automatic_is_asked_again(code: int, why: Why) -> None:
    of = opened(AUTOMATIC)
    of.client.work(1)
    call = of.call(Verb.COMMIT, value=1)
    fails_over(of)
    (asked,) = [each for each in of.performed if each.verb is Verb.COMMIT]
    assert (asked.value, asked.repeated) == (1, True)
    of.answer(asked, code)
    assert told(of, call).why is why


@pytest.mark.parametrize("mode", Mode)
def test_commit_in_flight_given_up_is_unknown(mode: Mode) -> None:
    of = opened(mode)
    of.client.work(1)
    call = of.call(Verb.COMMIT, value=1)
    given_up(of, mode)
    assert told(of, call).end is End.UNKNOWN


def retried(of: Ends, outcome: Outcome) -> int:
    """With another session: the call that asks for what is unknown."""
    assert outcome.token is not None
    of.does(of.client.reconnect(of.now))
    of.connect()
    number = of.client.next_id()
    of.does(of.client.retry(outcome.token, number, of.now))
    return number


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(("code", "why"), [(0, Why.DONE), (ENDED, Why.ROLLED_BACK)])
def test_commit_that_is_unknown_is_asked_for_by_its_token(mode: Mode, code: int, why: Why) -> None:
    of = opened(mode)
    of.client.work(1)
    call = of.call(Verb.COMMIT, value=1, body=b"operations")
    given_up(of, mode)
    number = retried(of, told(of, call))
    asked = of.performed[-1]
    assert (asked.verb, asked.value, asked.repeated) == (Verb.COMMIT, 1, True)
    of.answer(asked, code)
    assert told(of, number).why is why


def test_commit_that_another_node_does_not_know_is_unknown_there_and_whenever_asked_again() -> None:
    of = at_node(A)
    of.client.work(1)
    call = of.call(Verb.COMMIT, value=1, body=b"all")
    of.broker_dies()
    of.connect(B)
    assert of.performed[-1].repeated
    of.answer(of.performed[-1], ENDED)
    outcome = told(of, call)
    assert (outcome.end, outcome.why) == (End.UNKNOWN, Why.CLOSED)
    assert outcome.token is not None
    number = of.client.next_id()
    of.does(of.client.retry(outcome.token, number, of.now))
    of.answer(of.performed[-1], ENDED)
    assert told(of, number).end is End.UNKNOWN
    of.broker_dies()
    of.connect(A)
    number = of.client.next_id()
    of.does(of.client.retry(outcome.token, number, of.now))
    of.answer(of.performed[-1], ENDED)
    assert told(of, number).why is Why.ROLLED_BACK, "its own node knows"


def test_commit_that_is_asked_again_settles_no_delivery_of_the_next_session() -> None:
    of = opened(AUTOMATIC)
    of.client.work(1)
    of.call(Verb.COMMIT, value=1, settles=(0,))
    fails_over(of)
    of.deliver(CONSUMER)
    (asked,) = [each for each in of.performed if each.verb is Verb.COMMIT]
    of.answer(asked)
    ack = of.call(Verb.ACK, value=0, generation=of.client.generation)
    of.answer(of.performed[-1])
    assert told(of, ack).end is End.OK


def test_commit_that_is_refused_has_dealt_with_its_deliveries() -> None:
    of = opened(AUTOMATIC)
    of.client.work(1)
    call = of.call(Verb.COMMIT, value=1, settles=(0,))
    of.answer(of.performed[-1], FULL)
    assert told(of, call).end is End.FAILED
    assert not of.client.in_hand
    assert not of.client.consumers[CONSUMER].in_hand


# --- scheduled messages ---------------------------------------------------------------------------


def test_schedule_sent_automatic_is_sent_again_with_its_number() -> None:
    of = opened(AUTOMATIC)
    call = of.call(Verb.SCHEDULE, value=7, body=b"x")
    fails_over(of)
    (again,) = [each for each in of.performed if each.verb is Verb.SCHEDULE]
    assert (again.value, again.body, again.repeated) == (7, b"x", True)
    of.answer(again)
    assert told(of, call).end is End.OK


@pytest.mark.parametrize("mode", Mode)
def test_schedule_sent_and_given_up_is_unknown_with_a_token(mode: Mode) -> None:
    of = opened(mode)
    call = of.call(Verb.SCHEDULE, value=7, body=b"x")
    given_up(of, mode)
    assert told(of, call).end is End.UNKNOWN
    number = retried(of, told(of, call))
    again = of.performed[-1]
    assert (again.verb, again.value, again.body, again.repeated) == (
        Verb.SCHEDULE, 7, b"x", True,
    )  # fmt: skip
    of.answer(again, value=3)
    assert (told(of, number).end, told(of, number).value) == (End.OK, 3)
    last = of.client.next_id()
    of.does(of.client.retry(told(of, call).token or Token(0, 0, 0), last, of.now))
    assert told(of, last).value == 3, "it is known now"


def test_of_two_retries_at_once_the_second_is_unknown() -> None:
    of = opened(APPLICATION)
    call = of.call(Verb.SCHEDULE, value=7, body=b"x")
    given_up(of, APPLICATION)
    first = retried(of, told(of, call))
    second = of.client.next_id()
    of.does(of.client.retry(told(of, call).token or Token(0, 0, 0), second, of.now))
    assert told(of, second).end is End.UNKNOWN
    of.answer(of.performed[-1])
    assert told(of, first).end is End.OK


# --- blocked for credit; opening a session --------------------------------------------------------


def test_blocked_for_credit_automatic_goes_on() -> None:
    of = ends(confirmation_window=100)
    of.call(Verb.PRODUCER, target=PRODUCER)
    calls = [of.call(Verb.PUBLISH, target=PRODUCER, body=bytes(90)) for _ in range(2)]
    assert [each.value for each in of.performed if each.verb is Verb.PUBLISH] == [1]
    fails_over(of)
    for number in (1, 2):
        command = of.performed[-1]
        assert command.value == number
        of.answer(command)
    assert all(told(of, call).end is End.OK for call in calls)


@pytest.mark.parametrize("mode", Mode)
def test_blocked_for_credit_given_up_failed(mode: Mode) -> None:
    of = ends(mode, confirmation_window=100)
    of.call(Verb.PRODUCER, target=PRODUCER)
    calls = [of.call(Verb.PUBLISH, target=PRODUCER, body=bytes(90)) for _ in range(2)]
    given_up(of, mode)
    assert [told(of, call).end for call in calls] == [End.UNKNOWN, End.FAILED]


def test_opening_a_session_automatic_goes_on() -> None:
    of = ends()
    of.broker_dies()
    call = of.call(Verb.CONSUMER, target=CONSUMER, value=1)
    of.connect()
    assert told(of, call).end is End.OK


@pytest.mark.parametrize("mode", Mode)
def test_opening_a_session_given_up_failed(mode: Mode) -> None:
    of = ends(mode)
    of.broker_dies()
    call = of.call(Verb.CONSUMER, target=CONSUMER, value=1)
    if mode is AUTOMATIC:
        deadline_passes(of)
    assert told(of, call).end is End.FAILED


# --- browse, request, changes ---------------------------------------------------------------------


def test_browse_automatic_starts_again() -> None:
    of = opened(AUTOMATIC)
    call = of.call(Verb.BROWSE)
    fails_over(of)
    of.answer(of.performed[-1], body=b"all")
    assert (told(of, call).end, told(of, call).body) == (End.OK, b"all")


@pytest.mark.parametrize("mode", Mode)
def test_browse_given_up_failed(mode: Mode) -> None:
    of = opened(mode)
    call = of.call(Verb.BROWSE)
    given_up(of, mode)
    assert told(of, call).end is End.FAILED


def test_request_without_reply_automatic_is_unknown_and_not_sent_again() -> None:
    of = opened(AUTOMATIC)
    call = of.call(Verb.REQUEST)
    fails_over(of)
    assert told(of, call).end is End.UNKNOWN
    assert not [each for each in of.performed if each.verb is Verb.REQUEST]


@pytest.mark.parametrize("mode", Mode)
def test_request_without_reply_given_up_is_unknown(mode: Mode) -> None:
    of = opened(mode)
    call = of.call(Verb.REQUEST)
    given_up(of, mode)
    assert told(of, call).end is End.UNKNOWN


@pytest.mark.parametrize(("mode", "end"), [(AUTOMATIC, End.OK), (APPLICATION, End.UNKNOWN)])
def test_a_change_in_flight(mode: Mode, end: End) -> None:
    of = opened(mode)
    call = of.call(Verb.DECLARE, body=b"q")
    if mode is AUTOMATIC:
        fails_over(of)
        assert of.performed[-1].repeated
        of.answer(of.performed[-1])
    else:
        given_up(of, mode)
    assert told(of, call).end is end
