"""A message in hand: what it tells of itself, before and after it was dealt with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import shmbroker
from shmbroker import aio
from tests.ipc.aio.loop import run


def test_what_a_message_tells(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("orders", priorities=True)
    queue.publish(b"hello", priority=7, ttl=60)
    (copied,) = queue.browse()
    message = queue.get()
    assert (message.queue, message.priority, message.redelivered) == ("orders", 7, False)
    wanted = datetime.now(UTC) + timedelta(seconds=60)
    for each in (copied, message):
        assert each.expires_at is not None
        assert each.expires_at.tzinfo is UTC
        assert abs(each.expires_at - wanted) < timedelta(seconds=10)
    message.give_back()
    message = queue.get()
    assert message.redelivered
    message.ack()
    queue.publish(b"plain")
    (copied,) = queue.browse()
    message = queue.get()
    assert (message.priority, message.expires_at) == (None, None)
    assert (copied.priority, copied.expires_at, copied.redelivered) == (None, None, False)


def test_what_was_dealt_with_says_so_and_blames_nobody(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("orders")
    for how, verb in [
        ("acknowledged", "ack"),
        ("given back", "give_back"),
        ("rejected", "reject"),
    ]:
        queue.publish(b"x")
        message = queue.get()
        getattr(message, verb)()
        for name in ("key", "properties", "position", "view", "deliveries", "priority"):
            with pytest.raises(shmbroker.AlreadyDealtWith, match=f"already {how}") as error:
                getattr(message, name)
            assert "else" not in str(error.value)
        with pytest.raises(shmbroker.DeliveryRevoked):
            message.ack()
        assert message.queue == "orders"
        assert repr(message) == f"<Message of queue 'orders', {how}>"
        queue.purge()


def test_nack(broker: shmbroker.Broker) -> None:
    broker.declare_queue("dead")
    queue = broker.declare_queue("orders", dead_letter="dead")
    queue.publish(b"x")
    queue.get().nack()
    assert len(queue) == 1
    queue.get().nack(requeue=False)
    assert (len(queue), len(broker.queue("dead"))) == (0, 1)
    kept = broker.declare_queue("kept", non_destructive=True)
    kept.publish(b"x")
    (message,) = kept.consume(timeout=0)
    message.nack()
    with pytest.raises(shmbroker.InvalidArgument):
        message.nack(requeue=False)


def test_how_they_show_themselves(broker: shmbroker.Broker, url: str) -> None:
    queue = broker.declare_queue("orders")
    assert repr(queue) == f"<Queue 'orders' of {broker.vhost!r}>"
    assert repr(broker) == f"<Broker of {broker.vhost!r}, participant {broker.participant}>"
    queue.publish(b"hello")
    message = queue.get()
    assert repr(message) == "<Message of queue 'orders', position 0, 5 bytes>"
    with shmbroker.connect(url, observe=True) as looking:
        assert repr(looking) == f"<Broker of {broker.vhost!r}, observer>"
    assert repr(looking) == f"<Broker of {broker.vhost!r}, closed>"
    durable = broker.declare_queue("safe", durable=True)
    assert repr(durable) == f"<DurableQueue 'safe' of {broker.vhost!r}>"


def test_a_queue_has_a_length_and_is_true_when_empty(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("orders")
    assert queue
    queue.publish_many([b"a", b"b"])
    message = queue.get()
    assert len(queue) == 2
    message.ack()
    assert len(queue) == 1


def test_a_queue_deletes_itself_and_no_other_of_its_name(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("orders")
    queue.delete()
    with pytest.raises(shmbroker.NotFound):
        broker.queue("orders")
    broker.declare_queue("orders")
    with pytest.raises(shmbroker.NotFound):
        queue.delete()
    broker.queue("orders")


def test_a_subscription_deletes_itself(broker: shmbroker.Broker) -> None:
    broker.declare_exchange("e", "fanout")
    broker.subscription("s", exchange="e", durable=True).delete()
    assert broker.subscriptions() == []


def test_the_same_in_asyncio(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("orders")
            assert queue
            await queue.publish(b"x", ttl=60, priority=3)
            assert len(queue) == 1
            message = await queue.get()
            assert (message.queue, message.priority) == ("orders", 3)
            assert message.expires_at is not None
            message.nack()
            await queue.delete()
            with pytest.raises(shmbroker.NotFound):
                await broker.queue("orders")

    run(main())
