"""What is larger than goes over a link is refused before it is sent, and the session goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

import shmbroker
from shmbroker import MessageTooLarge
from tests.support.serving import Site

MOST = 100_000
"""Less than a broker takes, so that little memory is needed."""


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
