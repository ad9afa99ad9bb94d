"""What waits at a broker, when that is another one from some moment on."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.wire.words import Verb
from tests.support.session_ends import ends


@pytest.mark.parametrize("verb", [Verb.GET, Verb.OPERATE, Verb.SCHEDULE, Verb.PUBLISH])
def test_what_waits_at_a_broker_waits_at_the_next_for_what_is_left(verb: Verb) -> None:
    of = ends()
    of.call(Verb.PRODUCER, target=1)
    of.call(verb, target=1, value=int(verb is Verb.SCHEDULE), wait_ms=5000)
    for waits in (5000, 3000, 1000, 0):
        assert [each.wait_ms for each in of.performed if each.verb is verb] == [waits]
        of.now += 2.0
        of.broker_dies()
        of.connect(b"n" * 16, b"%16d" % waits)


def test_the_time_without_a_broker_is_not_that_of_a_request() -> None:
    """It would be carried out, and nobody would wait for its reply."""
    of = ends()
    of.broker_dies()
    of.call(Verb.REQUEST, wait_ms=1000)
    of.now += 2.0
    of.connect(b"n" * 16, b"p" * 16)
    assert [each.wait_ms for each in of.performed] == [1000]


def test_a_request_that_was_not_heard_has_all_of_its_time() -> None:
    of = ends()
    of.loses_to_broker = True
    of.call(Verb.REQUEST, wait_ms=1000)
    of.now += 2.0
    of.cut()
    of.connect()
    assert [each.wait_ms for each in of.performed] == [1000]


@pytest.mark.parametrize(("given", "waits"), [(30000, 30000), (None, 1000)])
@pytest.mark.parametrize("verb", [Verb.COMMIT, Verb.PUBLISH])
def test_what_is_asked_for_again_has_the_time_of_who_asks(
    verb: Verb, given: int | None, waits: int
) -> None:
    """It is on its way still, and its first time is over."""
    of = ends()
    of.call(Verb.PRODUCER, target=1)
    of.client.work(7)
    call = of.call(verb, 1.0, target=1, value=7 * (verb is Verb.COMMIT), wait_ms=1000, body=b"m")
    of.now += 2.0
    of.does(of.client.tick(of.now))
    outcome = of.outcome(call)
    assert outcome is not None
    assert outcome.token is not None
    again = of.client.next_id()
    of.does(of.client.retry(outcome.token, again, of.now, wait_ms=given, timeout=60.0))
    of.broker_dies()
    of.connect(b"n" * 16, b"q" * 16)
    assert [each.wait_ms for each in of.performed if each.verb is verb] == [waits]


def test_what_goes_when_another_is_cancelled_waits_from_then_on() -> None:
    of = ends(confirmation_window=1000)
    of.call(Verb.SCHEDULE, value=1, body=bytes(800))
    large = of.call(Verb.SCHEDULE, value=2, body=bytes(800))
    of.call(Verb.SCHEDULE, value=3, wait_ms=5000)
    of.now += 3.0
    of.does(of.client.cancel(large, of.now))
    of.broker_dies()
    of.connect(b"n" * 16, b"p" * 16)
    assert [(each.value, each.wait_ms) for each in of.performed][-1] == (3, 5000)
