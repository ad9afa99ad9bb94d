"""What is received over a link: bodies of any kind, by two commands for however many messages."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import shmbroker
from shmbroker.netbridge.wire.words import Verb
from tests.netbridge.client.conftest import calm
from tests.support.serving import SITE, Site

BODIES = [b"", b"x", b"eight by", b"more than that", bytes(5000)]


def test_many_are_received_by_two_commands(served: Site) -> None:
    password = "correct horse battery"
    uri = f"tcp://{SITE.user}:{password}@127.0.0.1:{served.port}"
    with shmbroker.connect(uri) as broker:
        queue = broker.declare_queue("q")
        for body in BODIES:
            queue.publish(body, key="a key", priority=None, properties={"of": "it"}, ttl=60)
            queue.publish(body)
        calls = broker._session._client.calls  # type: ignore[attr-defined]
        before = calls.next
        assert queue.receive_many(100, timeout=20) == [b for body in BODIES for b in (body, body)]
        assert calls.next == before + 2
        assert len(queue) == 0
        assert queue.statistics().taken == 0


def test_what_may_have_been_acknowledged_is_handed_out(
    served: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost behind the acknowledgement, which the broker may have carried out."""
    uri = f"{calm(served)}&failover-mode=application"
    broker: Any = shmbroker.connect(uri, user=SITE.user, password="correct horse battery")
    with broker:
        queue, session = broker.declare_queue("q"), broker._session
        queue.publish(b"once")
        begin, goes_on = session.begin, threading.Event()

        def cut(what: str, verb: Verb, **more: Any) -> Any:
            if verb is not Verb.ACK:
                return begin(what, verb, **more)
            session._thread.call(goes_on.wait)  # both of these before it hears any answer
            try:
                return begin(what, verb, **more)
            finally:
                session._thread.call(session.link.disconnect)
                goes_on.set()

        monkeypatch.setattr(session, "begin", cut)
        assert queue.receive(timeout=20) == b"once"
