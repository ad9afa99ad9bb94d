"""What is larger than goes over a link is refused before it is sent, and the session goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import shmbroker
from shmbroker import MessageTooLarge
from shmbroker.netbridge.remote.session import SessionLimits
from tests.support.serving import Site

MOST = 100_000
"""Less than a broker takes, so that little memory is needed."""


@pytest.fixture
def limited(vhost: str, tmp_path: Path) -> Iterator[Site]:
    """A broker that sends little at once; its programs would take more."""
    with shmbroker.connect(f"shm://{vhost}", name="test") as broker:
        site = Site(broker, tmp_path, SessionLimits(message_bytes=MOST))
        with site.served():
            yield site


def test_a_message_that_is_too_large_is_refused_with_the_reason(served: Site) -> None:
    uri = f"tcp://site:correct horse battery@127.0.0.1:{served.port}"
    with shmbroker.connect(uri) as broker:
        broker._session.options = replace(broker._session.options, message_bytes=MOST)
        queue = broker.declare_queue("orders")
        exchange = broker.declare_exchange("trade", "fanout")
        broker.bind("trade", "orders")
        said = f"publishing to queue 'orders': 100,[0-9]* bytes are more than .* {MOST:,}"
        with pytest.raises(MessageTooLarge, match=said):
            queue.publish(bytes(MOST))
        with pytest.raises(MessageTooLarge, match="exchange 'trade'"):
            exchange.publish(bytes(MOST), key="k")
        with pytest.raises(MessageTooLarge) as caught:
            queue.publish_many([b"a", bytes(MOST)])
        assert caught.value.published == 0
        queue.publish(bytes(MOST // 2))
        assert [len(each) for each in queue.receive_many(3)] == [MOST // 2]


def test_a_transaction_that_is_too_large_is_not_sent_and_can_be_rolled_back(served: Site) -> None:
    uri = f"tcp://site:correct horse battery@127.0.0.1:{served.port}"
    with shmbroker.connect(uri) as broker:
        broker._session.options = replace(broker._session.options, message_bytes=MOST)
        queue = broker.declare_queue("orders")
        queue.publish(b"first")
        with pytest.raises(MessageTooLarge, match="committing"), broker.transaction() as work:
            [message] = [work.queue("orders").get(timeout=0)]
            message.ack()
            for _ in range(3):
                work.publish("orders", bytes(MOST // 2))
        assert queue.receive(timeout=0) == b"first", "it was given back"
        assert len(queue) == 0


def test_large_messages_behind_small_ones_come_in_portions(limited: Site) -> None:
    uri = f"tcp://site:correct horse battery@127.0.0.1:{limited.port}"
    sizes = [10] * 20 + [MOST // 3] * 200
    for name in ("consumed", "received"):
        own = limited.broker.declare_queue(name)
        for each in sizes:
            own.publish(bytes(each))
    with shmbroker.connect(uri) as broker:
        found = []
        for message in broker.queue("consumed").consume(timeout=10, prefetch=1000):
            assert not message.redelivered
            found.append(len(message.body))
            message.ack()
            if len(found) == len(sizes):
                break
        assert found == sizes
        found, queue = [], broker.queue("received")
        while len(found) < len(sizes):
            found += [len(each) for each in queue.receive_many(100, timeout=10)]
        assert found == sizes
        assert not len(own)


def test_a_message_that_no_link_takes_is_told_and_stays(limited: Site) -> None:
    uri = f"tcp://site:correct horse battery@127.0.0.1:{limited.port}"
    own = limited.broker.declare_queue("orders", max_deliveries=None)
    own.publish(b"before")
    own.publish(bytes(MOST + 1))
    own.publish(b"behind")
    with shmbroker.connect(uri) as broker:
        queue = broker.queue("orders")
        assert queue.receive(timeout=10) == b"before"
        said = f"queue 'orders': 100,[0-9]* bytes are more than .* {MOST:,}"
        for _ in range(2):
            with pytest.raises(MessageTooLarge, match=said):
                queue.get(timeout=10)
        with pytest.raises(MessageTooLarge, match=said):
            next(iter(queue.consume(timeout=10)))
        with pytest.raises(MessageTooLarge, match="browse"):
            list(queue.browse())
        with (
            pytest.raises(MessageTooLarge, match=said),
            broker.subscribe("orders", start="earliest", timeout=10) as subscription,
        ):
            next(iter(subscription))
        assert len(own.receive(timeout=0)) == MOST + 1
        assert queue.receive(timeout=10) == b"behind"


def test_what_is_before_a_message_that_no_link_takes_is_shown(limited: Site) -> None:
    own = limited.broker.declare_queue("orders")
    for body in (b"1", b"2", bytes(MOST + 1)):
        own.publish(body)
    uri = f"tcp://site:correct horse battery@127.0.0.1:{limited.port}"
    shown = []
    with (
        shmbroker.connect(uri) as broker,
        broker.subscribe("orders", start="earliest", timeout=10) as subscription,
        pytest.raises(MessageTooLarge, match="queue 'orders'"),
    ):
        for each in subscription:
            shown.append(bytes(each.body))
    assert shown == [b"1", b"2"]
