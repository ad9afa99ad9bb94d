"""What is received over a link: bodies of any kind, by two commands for however many messages."""

from __future__ import annotations

import shmbroker
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
