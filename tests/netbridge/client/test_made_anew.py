"""A queue is deleted and made anew while a session is lost: its positions have other messages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import DeliveryRevoked
from shmbroker.netbridge.serving.service import Service
from tests.support.serving import Site

LOGIN = {"user": "site", "password": "correct horse battery"}
PATIENCE = 60.0


@pytest.fixture
def site(vhost: str, tmp_path: Path) -> Iterator[tuple[Site, Service]]:
    with shmbroker.connect(f"shm://{vhost}", name="test") as broker:
        made = Site(broker, tmp_path)
        with made.served() as audience:
            yield made, audience._service


def connected(to: Site) -> Any:
    uri = f"failover:(tcp://127.0.0.1:{to.port})?startup-max-reconnect-attempts=-1"
    return shmbroker.connect(uri, **LOGIN)


@contextmanager
def lost_unanswered(service: Service) -> Iterator[None]:
    """Nothing is heard that programs say in it, and at its end their sessions are over."""
    stands, goes = threading.Event(), threading.Event()

    def step() -> None:
        stands.set()
        assert goes.wait(PATIENCE)
        for session in service.sessions:
            service.ends(session, "by the test")

    service.soon(step)
    assert stands.wait(PATIENCE)
    try:
        yield
    finally:
        goes.set()


@pytest.mark.parametrize("verb", ["ack", "reject"])
def test_what_nobody_has_seen_is_not_settled_by_what_is_repeated(
    site: tuple[Site, Service], verb: str
) -> None:
    served, service = site
    with connected(served) as broker, ThreadPoolExecutor() as threads:
        queue = broker.declare_queue("q")
        queue.publish(b"old")
        message = queue.get(timeout=PATIENCE)
        with lost_unanswered(service):
            settling = threads.submit(getattr(message, verb))
            made_anew(served, until=lambda: broker._session._client.calls.sent)
        with pytest.raises(DeliveryRevoked):
            settling.result(PATIENCE)
        (found,) = served.broker.queue("q").browse()
        assert (found.body, found.deliveries) == (b"new", 0)


def made_anew(served: Site, until: Callable[[], Any]) -> None:
    while not until():
        pass
    served.broker.delete_queue("q", force=True)
    served.broker.declare_queue("q").publish(b"new")
