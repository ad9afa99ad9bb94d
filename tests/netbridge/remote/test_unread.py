"""A program that reads nothing: what waits for it at the broker is bounded."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.remote.options import NO_LIMIT, UNSAID_MAX
from shmbroker.netbridge.wire.frame import Seen
from tests.support.session_ends import consuming


def test_a_broker_keeps_no_more_than_the_window() -> None:
    of = consuming(prefetch=100, confirmation_window=1000)
    of.loses_to_broker = True
    for _ in range(20):
        if of.session.room(2)[0]:
            of.deliver(2, body=bytes(200))
    assert of.session.kept_bytes < 1000 + 300
    assert of.session.room(2) == (0, 0)
    of.loses_to_broker = False
    for _, _, actions in of.sessions.received(of.link, Seen(of.client.seen), 0.0):
        of.broker_does(actions)
    assert of.session.kept_bytes == 0
    assert of.session.room(2)[0] > 0


def test_who_never_reads_gets_no_more_than_the_window_also_without_re_attaching() -> None:
    of = consuming(prefetch=1000, confirmation_window=NO_LIMIT)
    of.session.window = 1000
    of.loses_to_broker = True
    for _ in range(20):
        if of.session.room(2)[0]:
            of.deliver(2, body=bytes(200))
    assert of.session.room(2) == (0, 0)
    assert of.session.kept_bytes < 1000 + 300
    assert all(each.frame is None for each in of.session.kept), "counted, and not kept"
    of.loses_to_broker = False
    for _, _, actions in of.sessions.received(of.link, Seen(of.client.seen), 0.0):
        of.broker_does(actions)
    assert of.session.room(2)[0] > 0


@pytest.mark.parametrize("window", [NO_LIMIT, 1 << 30])
def test_a_program_says_what_it_has_seen_whatever_its_window(window: int) -> None:
    of = consuming(prefetch=1000, confirmation_window=window)
    for _ in range(5):
        of.deliver(2, body=bytes(UNSAID_MAX // 2))
    assert of.session.kept_bytes < UNSAID_MAX
