"""Credit and windows: all of it comes back, and what takes is not behind what waits for room."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker.netbridge.remote import calls, client
from shmbroker.netbridge.remote.session import SessionLimits
from shmbroker.netbridge.wire.words import Verb
from tests.support.session_ends import consuming, ends


def test_credit_of_messages_of_mixed_sizes_comes_back_to_the_byte() -> None:
    of = consuming(28, prefetch_bytes=4096)
    window = of.session.room(2)
    for _ in range(700):
        first = of.session.next_delivery
        of.deliver(2, 7, bytes(566))
        of.call(Verb.ACK, value=first, count=7, generation=1)
        of.answer(of.performed[-1])
    assert of.session.room(2) == window


OTHER = [
    (Verb.GET, {"body": b"queue"}),
    (Verb.CONSUMER, {"target": 2, "value": 4}),
    (Verb.PUBLISH, {"target": 3, "body": bytes(4000)}),
    (Verb.LOOK, {"body": b"queue"}),
]


@pytest.mark.parametrize(("verb", "fields"), OTHER)
def test_what_takes_may_be_said_while_a_publish_waits_for_room(
    verb: Verb, fields: dict[str, Any]
) -> None:
    of = ends(confirmation_window=4096)
    of.call(Verb.PRODUCER, target=1)
    of.call(Verb.PRODUCER, target=3)
    of.call(Verb.PUBLISH, target=1, body=bytes(4000))
    of.call(verb, **fields)
    assert [each.verb for each in of.performed[-2:]] == [Verb.PUBLISH, verb]


@pytest.mark.parametrize("verb", [Verb.COMMIT, Verb.REQUEST])
@pytest.mark.parametrize(("other", "fields"), [*OTHER, (Verb.COMMIT, {"value": 8})])
def test_what_a_commit_or_a_request_waits_for_may_be_said(
    verb: Verb, other: Verb, fields: dict[str, Any]
) -> None:
    of = ends(confirmation_window=4096)
    of.call(Verb.PRODUCER, target=3)
    for number in (7, 8):
        of.client.work(number)
    of.call(verb, value=7, body=bytes(5000))
    of.call(other, **fields)
    assert [each.verb for each in of.performed[-2:]] == [verb, other]


def test_what_one_producer_says_stays_in_its_order() -> None:
    of = ends(confirmation_window=4096)
    of.call(Verb.PRODUCER, target=1)
    sizes = [3000, 3000, 10, 3000]
    for size in sizes:
        of.call(Verb.PUBLISH, target=1, body=bytes(size))
    for at in range(1, 5):
        of.answer(of.performed[at])
    assert [len(each.body) for each in of.performed[1:]] == sizes


def test_all_windows_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "TOGETHER", 16 << 10)
    of = ends(confirmation_window=4096)
    for target in range(1, 9):
        of.call(Verb.PRODUCER, target=target)
        of.call(Verb.PUBLISH, target=target, body=bytes(4000))
    published = [each for each in of.performed if each.verb is Verb.PUBLISH]
    assert [each.target for each in published] == [1, 2, 3, 4]
    of.answer(published[1])
    assert [each.target for each in of.performed if each.verb is Verb.PUBLISH] == [1, 2, 3, 4, 5]


def test_a_temporary_queue_is_made_again_before_its_consumer_however_small_the_window() -> None:
    of = ends(confirmation_window=100)
    for target in range(1, 4):
        of.call(Verb.TEMPORARY_QUEUE, target=target, body=bytes(90))
    of.call(Verb.CONSUMER, target=9, value=4)
    of.broker_dies()
    of.connect()
    assert [each.verb for each in of.performed] == [Verb.TEMPORARY_QUEUE] * 3 + [Verb.CONSUMER]


def test_however_large_the_window_no_more_waits_than_a_broker_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "WAITING_MEMORY", 16 << 10)
    of = ends(confirmation_window=64 << 10)
    of.session.limits = SessionLimits(held=8 << 10)
    of.call(Verb.PRODUCER, target=1)
    for _ in range(50):
        of.call(Verb.PUBLISH, target=1, body=bytes(1000))
    assert not of.broken()
