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
