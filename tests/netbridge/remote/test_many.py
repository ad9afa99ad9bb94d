"""The pieces of a `publish_many`: behind one that is not done nothing is, so there is no hole."""

from __future__ import annotations

from functools import partial

import pytest

from shmbroker.core.codes import FULL, UNCONFIRMED
from shmbroker.netbridge.remote.call import Many
from shmbroker.netbridge.remote.outcome import End, Outcome, Why
from shmbroker.netbridge.wire.frame import Attached
from shmbroker.netbridge.wire.words import Verb
from tests.support.session_ends import Ends, ends

BODY = bytes(400)
TWO = 2 * (len(BODY) + 64)
"""A window for two pieces."""
Said = tuple[Verb, int, int]


def producing(**more: int) -> Ends:
    of = ends(**more)
    of.call(Verb.PRODUCER, target=1)
    return of


def published(of: Ends, many: Many, count: int = 3, wait_ms: int = 0) -> int:
    return of.call(
        Verb.PUBLISH, target=1, count=count, body=BODY, many=many, wait_ms=wait_ms, timeout=30.0
    )


def ended(of: Ends, call: int) -> Outcome:
    outcome = of.outcome(call)
    assert outcome is not None
    return outcome


def said(of: Ends) -> list[Said]:
    return [
        (each.verb, each.value, each.count)
        for each in of.performed
        if each.verb is not Verb.PRODUCER
    ]


def test_behind_a_piece_that_is_refused_nothing_is_said_or_done() -> None:
    of, many = producing(confirmation_window=TWO), Many()
    calls = [published(of, many) for _ in range(4)]
    assert said(of) == [(Verb.PUBLISH, 1, 3), (Verb.PUBLISH_BEHIND, 4, 3)]
    first, second = of.performed[1:]
    of.answer(first, FULL, value=2)
    assert [ended(of, each).end for each in calls] == [End.FAILED] * 4
    assert [ended(of, each).value for each in calls] == [2, 0, 0, 0], "so many were published"
    late = published(of, many)
    assert ended(of, late).end is End.FAILED, "a piece that its program was still making"
    of.answer(second, FULL)
    assert said(of)[2:] == [(Verb.DECIDED, 3, 1), (Verb.DECIDED, 4, 3)]
    another = published(of, Many())
    assert said(of)[4:] == [(Verb.PUBLISH, 7, 3)]
    of.answer(of.performed[-1])
    assert ended(of, another).end is End.OK


def test_a_piece_that_is_there_and_not_confirmed_in_time_keeps_nothing_back() -> None:
    of, many = producing(), Many()
    first = published(of, many)
    of.answer(of.performed[-1], UNCONFIRMED)
    assert ended(of, first).end is End.UNKNOWN
    published(of, many)
    assert said(of) == [(Verb.PUBLISH, 1, 3), (Verb.PUBLISH_BEHIND, 4, 3)]


def test_what_was_said_behind_a_refused_piece_is_not_said_again_to_another_broker() -> None:
    of, many = producing(), Many()
    calls = [published(of, many) for _ in range(2)]
    of.answer(of.performed[1], FULL)
    of.broker_dies()
    of.connect()
    assert [each for each in said(of) if each[0] is not Verb.DECIDED] == []
    assert [ended(of, each).end for each in calls] == [End.FAILED] * 2


@pytest.mark.parametrize("is_late", [False, True])
def test_behind_a_piece_that_nobody_waits_for_before_it_is_said_nothing_is_said(
    is_late: bool,
) -> None:
    of, many = producing(), Many()
    of.broker_dies()
    calls = [published(of, many) for _ in range(3)]
    if is_late:
        of.now += 30.0
        of.does(of.client.tick(of.now))
    else:
        of.does(of.client.cancel(calls[0], of.now))
    of.connect()
    assert said(of) == []
    why = Why.LATE if is_late else Why.CANCELLED
    assert [(ended(of, each).end, ended(of, each).why) for each in calls] == [(End.FAILED, why)] * 3


def test_behind_a_piece_that_is_cancelled_before_it_is_said_again_nothing_is_said() -> None:
    of, many = producing(), Many()
    calls = [published(of, many) for _ in range(3)]
    of.answer(of.performed[1])
    of.broker_dies()
    of.link += 1
    of.does(of.client.connected(of.now))
    of.does(of.client.received(Attached(False, 0, 5000), of.now))
    of.does(of.client.cancel(calls[1], of.now))
    of.does(of.client.lost(of.now))
    of.connect()
    assert said(of) == [(Verb.DECIDED, 4, 3), (Verb.DECIDED, 7, 3)]
    assert not of.client.doubt.is_open
    assert ended(of, published(of, many)).end is End.FAILED


def test_retried_pieces_are_pieces_again() -> None:
    of, many = producing(), Many()
    calls = [published(of, many, wait_ms=1000) for _ in range(3)]
    of.now += 30.0
    of.does(of.client.tick(of.now))
    tokens = [ended(of, each).token for each in calls]
    of.broker_dies()
    of.connect()
    of.performed.clear()
    ids = [of.client.next_id() for _ in tokens]
    again = Many()
    for token, id in zip(tokens, ids, strict=True):
        assert token is not None
        of.does(of.client.retry(token, id, of.now, again))
    behind = Verb.PUBLISH_BEHIND
    assert said(of) == [(Verb.PUBLISH, 1, 3), (behind, 4, 3), (behind, 7, 3)]
    assert [each.wait_ms for each in of.performed] == [1000] * 3
    of.answer(of.performed[0], FULL)
    assert [ended(of, each).end for each in ids] == [End.FAILED] * 3


def test_a_publish_waits_for_room_until_one_moment_whenever_it_is_said() -> None:
    of = producing(confirmation_window=TWO)
    publish = partial(of.call, Verb.PUBLISH, target=1, body=BODY, timeout=30.0)
    for wait_ms in (1000, 1000, 1000, 500, -1):
        publish(wait_ms=wait_ms)
    of.now += 0.6
    for at in range(1, 4):
        of.answer(of.performed[at])
    assert [each.wait_ms for each in of.performed[1:]] == [1000, 1000, 400, 0, -1]
    of.now += 0.3
    of.broker_dies()
    of.connect()
    assert [each.wait_ms for each in of.performed[1:]] == [0, -1]
