"""What a broker refuses that another one may have done: nobody knows, and its token stays valid."""

from __future__ import annotations

import pytest

from shmbroker.core.codes import ARENA_FULL, FULL, NOT_FOUND
from shmbroker.netbridge.remote.body import asked
from shmbroker.netbridge.remote.call import Many
from shmbroker.netbridge.remote.client import Client
from shmbroker.netbridge.remote.options import Mode
from shmbroker.netbridge.remote.outcome import End, Outcome
from shmbroker.netbridge.wire.frame import Command
from shmbroker.netbridge.wire.words import Verb
from tests.support.session_ends import Ends, options

A, B = b"a" * 16, b"b" * 16
PRODUCER = 1


def at_node(node: bytes, mode: Mode = Mode.AUTOMATIC) -> Ends:
    """With a producer."""
    of = Ends(Client(b"s" * 16, options(mode)))
    of.does(of.client.start(0.0))
    of.connect(node)
    of.call(Verb.PRODUCER, target=PRODUCER)
    return of


def publish(of: Ends, many: Many | None = None) -> int:
    return of.call(Verb.PUBLISH, target=PRODUCER, body=b"x", many=many)


def goes(of: Ends, node: bytes, opens: int = 0) -> None:
    of.broker_dies()
    of.opens = opens
    of.connect(node)


def publishes(of: Ends) -> list[Command]:
    return [each for each in of.performed if each.verb in (Verb.PUBLISH, Verb.PUBLISH_BEHIND)]


def told(of: Ends, call: int) -> Outcome:
    outcome = of.outcome(call)
    assert outcome is not None, "it has not ended"
    return outcome


def retried(of: Ends, outcome: Outcome, many: Many | None = None) -> int:
    assert outcome.token is not None
    number = of.client.next_id()
    of.does(of.client.retry(outcome.token, number, of.now, many))
    return number


@pytest.mark.parametrize(("opens", "code"), [(NOT_FOUND, NOT_FOUND), (0, FULL)])
def test_a_publish_that_another_node_refuses_is_unknown_until_its_own_node_is_asked(
    opens: int, code: int
) -> None:
    of = at_node(A)
    call = publish(of)
    goes(of, B, opens)
    of.answer(publishes(of)[-1], code)
    outcome = told(of, call)
    assert outcome.end is End.UNKNOWN
    again = retried(of, outcome)
    of.answer(publishes(of)[-1], code)
    assert told(of, again).end is End.UNKNOWN
    if opens:  # the program opens another one
        of.call(Verb.LEAVE, target=PRODUCER)
    goes(of, A)
    made = of.performed[0]
    assert (made.verb, made.value) == (Verb.PRODUCER, 1), "its number is not decided"
    last = retried(of, outcome)
    said = publishes(of)[-1]
    assert (said.value, said.body, said.repeated) == (1, b"x", True)
    of.answer(said)
    assert told(of, last).end is End.OK
    assert not of.client.doubt.is_open
    goes(of, A)
    made = [each for each in of.performed if each.verb is Verb.PRODUCER]
    assert len(made) == (0 if opens else 1), "one that was left is not made again for ever"


def test_a_publish_whose_producer_could_not_be_made_again_is_unknown() -> None:
    """Its number was not looked at, and may be there."""
    of = at_node(A)
    call = publish(of)
    goes(of, A, ARENA_FULL)
    of.answer(publishes(of)[-1], ARENA_FULL)
    assert told(of, call).end is End.UNKNOWN
    goes(of, A)
    last = retried(of, told(of, call))
    of.answer(publishes(of)[-1])
    assert told(of, last).end is End.OK


def test_a_publish_that_its_own_node_refuses_has_failed() -> None:
    of = at_node(A)
    call = publish(of)
    goes(of, A)
    of.answer(publishes(of)[-1], FULL)
    assert told(of, call).end is End.FAILED
    assert not of.client.doubt.is_open


def test_a_producer_that_cannot_be_made_again_is_left_if_nothing_of_it_is_unknown() -> None:
    of = at_node(A)
    goes(of, A, NOT_FOUND)
    assert not of.client.standing
    assert not of.client.producers


def test_one_that_nobody_waits_for_is_open_no_more() -> None:
    of = at_node(A)
    call = publish(of)
    goes(of, B)
    of.does(of.client.cancel(call, of.now))
    of.answer(publishes(of)[-1], FULL)
    assert not of.client.doubt.is_open


def test_pieces_that_another_node_refuses_are_unknown_and_those_behind_them_not_done() -> None:
    of, many = at_node(A), Many()
    calls = [publish(of, many) for _ in range(2)]
    goes(of, B)
    calls.append(publish(of, many))
    for each in publishes(of):
        of.answer(each, FULL)
    calls.append(publish(of, many))
    ends = [told(of, each).end for each in calls]
    assert ends == [End.UNKNOWN, End.UNKNOWN, End.FAILED, End.FAILED]


def test_what_is_asked_again_while_there_is_no_broker_stays_unknown() -> None:
    of, many = at_node(A, Mode.APPLICATION), Many()
    calls = [publish(of, many) for _ in range(2)]
    of.broker_dies()
    again = Many()
    asked_again = [retried(of, told(of, each), again) for each in calls]
    for call, each in zip(calls, asked_again, strict=True):
        assert (told(of, each).end, told(of, each).token) == (End.UNKNOWN, told(of, call).token)
    of.does(of.client.reconnect(of.now))
    of.connect(A)
    for call in calls:
        last = retried(of, told(of, call))
        of.answer(publishes(of)[-1])
        assert told(of, last).end is End.OK


@pytest.mark.parametrize(("fields", "end"), [({"opens": True}, End.FAILED), ({}, End.UNKNOWN)])
def test_a_declaration_that_another_node_refuses(fields: dict[str, bool], end: End) -> None:
    """To open a queue changes nothing."""
    of = at_node(A)
    call = of.call(Verb.DECLARE, body=asked(queue="q", **fields))
    goes(of, B)
    of.answer(of.performed[-1], NOT_FOUND)
    assert told(of, call).end is end
