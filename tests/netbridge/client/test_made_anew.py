"""Queues that are deleted: one is made anew while a session is lost, and has other messages at its
positions; others stay deleted when a session is made again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

import shmbroker
from shmbroker import DeliveryRevoked
from shmbroker.ipc.request.return_address import say_node
from shmbroker.ipc.sink.sink import Sink
from shmbroker.netbridge.client import queue as module
from shmbroker.netbridge.serving.destination import origin_of
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


def test_what_was_deleted_does_not_come_again(site: tuple[Site, Service]) -> None:
    served, service = site
    with connected(served) as broker:
        broker.declare_exchange("x", "topic")
        for name in ("deleted", "unsubscribed", "kept"):
            broker.subscription(name, exchange="x", key="#")
        temporary = [broker.temporary_queue() for _ in range(2)]
        broker.subscription("deleted", exchange="x", key="#").delete(force=True)
        broker.unsubscribe("unsubscribed", force=True)
        temporary[0].delete(force=True)
        made_again(service, broker)
        assert [each.name for each in broker.subscriptions()] == ["kept"]
        names = {each.name for each in broker.queues()}
        assert [each.name in names for each in temporary] == [False, True]


def test_a_temporary_queue_keeps_its_name_at_another_node(site: tuple[Site, Service]) -> None:
    served, service = site
    say_node(served.broker, "town", b"e" * 16)
    with connected(served) as broker:
        replies = broker.temporary_queue(slots=16)
        for node in (b"w" * 16, b"n" * 16):
            say_node(served.broker, "town", node)
            made_again(service, broker)
            replies.publish(b"a reply")
            assert replies.receive(timeout=PATIENCE) == b"a reply"
        assert [each.name for each in broker.queues()] == [replies.name]


def test_a_producer_that_could_not_be_made_again_is_opened_with_the_next_message(
    site: tuple[Site, Service],
) -> None:
    served, service = site
    with connected(served) as broker:
        queue = broker.declare_queue("q")
        queue.publish(b"before")
        client = broker._session._client
        (target,) = client.producers
        stream = Sink(served.broker, origin_of(client.session, target), checks=True, counts=True)

        def somebody_has_its_stream() -> None:
            for each in service.sessions:
                service.ends(each, "by the test")
            stream.to_queue(served.broker.queue("q"))

        told = events(broker)
        with stream:
            service.ask(somebody_has_its_stream)
            assert told.get(timeout=PATIENCE) == "failure-detected"
            assert told.get(timeout=PATIENCE) == "failover-completed"
            queue.publish(b"after")
        assert [each.body for each in queue.browse()] == [b"before", b"after"]


def test_a_browse_starts_again_from_the_front(
    site: tuple[Site, Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BROWSED", 2)
    served, service = site
    with connected(served) as broker:
        queue = broker.declare_queue("q")
        queue.publish_many([b"%d" % number for number in range(5)])
        browsing = queue.browse()
        assert [next(browsing).body for _ in range(3)] == [b"0", b"1", b"2"]
        made_again(service, broker)
        rest = [each.body for each in browsing]
        assert rest == [b"3", b"0", b"1", b"2", b"3", b"4"]


def events(broker: Any) -> SimpleQueue[str]:
    told: SimpleQueue[str] = SimpleQueue()
    broker.on_event(lambda event, _: told.put(event.value))
    return told


def made_again(service: Service, broker: Any) -> None:
    """The session, at the same broker."""
    told = events(broker)
    service.ask(lambda: [service.ends(each, "by the test") for each in service.sessions])
    assert told.get(timeout=PATIENCE) == "failure-detected"
    assert told.get(timeout=PATIENCE) == "failover-completed"
