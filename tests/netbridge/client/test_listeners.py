"""Listeners of a program that raise."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

import shmbroker
from tests.support.serving import Site

LOGIN = {"user": "site", "password": "correct horse battery"}
PATIENCE = 60.0


@pytest.fixture
def broker(served: Site) -> Any:
    uri = f"failover:(tcp://127.0.0.1:{served.port})?startup-max-reconnect-attempts=-1"
    made: Any = shmbroker.connect(uri, **LOGIN)
    yield made
    made.close()


def test_a_listener_that_raises_is_logged_and_the_connection_goes_on(
    broker: Any, caplog: pytest.LogCaptureFixture
) -> None:
    told = threading.Event()

    def raises(event: Any, _: str) -> None:
        raise ValueError(f"told of {event.value}")

    def listens(event: Any, _: str) -> None:
        if event.value == "reattached":
            told.set()

    broker.on_event(raises)
    broker.on_event(listens)
    queue = broker.declare_queue("q")
    with caplog.at_level(logging.ERROR, logger="shmbroker"):
        session = broker._session
        session._thread.ask(session.link.disconnect)
        assert told.wait(PATIENCE), "the listener behind it is told"
        queue.publish(b"goes on")
    assert queue.receive(timeout=PATIENCE) == b"goes on"
    assert "told of failure-detected" in caplog.text
