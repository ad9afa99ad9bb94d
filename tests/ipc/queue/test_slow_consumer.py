"""Consumers that keep messages for longer than the queue allows, while others wait."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from random import Random

import pytest

import shmbroker
from shmbroker import Broker, ConnectionClosed, DeliveryRevoked, InvalidArgument, Queue, aio
from shmbroker.ipc.connection.disconnecting import disconnected
from tests.support.killed import KILLS
from tests.support.victim import Confirm, dying

ANY_TIME = 1e9
"""Messages a second: whoever has one in hand at two looks is slow."""


def revoked(queue: Queue) -> None:
    """Wait until somebody took back what is in hand: the slow one is counted before that."""
    ends_at = time.monotonic() + 30
    while queue.statistics().taken:
        assert time.monotonic() < ends_at, "nobody looks"
        time.sleep(0.001)
    assert queue.statistics().slow_consumers == 1


def test_who_is_slow_is_told_of_once_a_message(broker: Broker, vhost: str) -> None:
    orders = broker.declare_queue("orders", slow_consumer_threshold=ANY_TIME)
    orders.publish_many([b"a", b"b", b"c"])
    with shmbroker.connect(f"shm://{vhost}", name="snail") as other:
        held = other.queue("orders").get(timeout=0)
        for _ in range(4):
            broker.repair_for(0)
        assert orders.statistics().slow_consumers == 1
        (error,) = [each for each in broker.errors() if "slow" in each.text]
        assert f"queue 'orders': participant {other.participant} (snail, pid " in error.text
        held.ack()
        held = other.queue("orders").get(timeout=0)
        for _ in range(4):
            broker.repair_for(0)
        assert orders.statistics().slow_consumers == 2
        held.ack()


def test_nobody_is_slow_while_nobody_waits(broker: Broker) -> None:
    orders = broker.declare_queue("orders", slow_consumer_threshold=ANY_TIME)
    orders.publish(b"a")
    with orders.get(timeout=0):
        for _ in range(4):
            broker.repair_for(0)
    assert orders.statistics().slow_consumers == 0


def test_nor_who_is_within_the_time(broker: Broker) -> None:
    orders = broker.declare_queue("orders", slow_consumer_threshold=0.001)
    orders.publish_many([b"a", b"b"])
    with orders.get(timeout=0):
        for _ in range(4):
            broker.repair_for(0)
    assert orders.statistics().slow_consumers == 0


def test_a_message_for_whoever_listens(broker: Broker) -> None:
    broker.declare_exchange("shmbroker.notifications", "topic")
    told = broker.declare_queue("told")
    broker.bind("shmbroker.notifications", "told", "consumer.#")
    orders = broker.declare_queue("orders", slow_consumer_threshold=ANY_TIME)
    orders.publish_many([b"a", b"b"])
    with orders.get(timeout=0):
        broker.repair_for(0)
        broker.repair_for(0)
    with told.get(timeout=0) as note:
        assert note.key == "consumer.slow"
        assert note.properties["queue"] == "orders"
        assert note.properties["participant"] == str(broker.participant)
        assert b"is a slow consumer" in note.body


def test_a_producer_that_waits_looks_as_well(broker: Broker, vhost: str) -> None:
    orders = broker.declare_queue(
        "orders", slots=4, slow_consumer_threshold=ANY_TIME, slow_consumer_policy="disconnect"
    )
    orders.publish_many([b"a", b"b", b"c", b"d"])
    with shmbroker.connect(f"shm://{vhost}") as other:
        held = other.queue("orders").get(timeout=0)
        waits = threading.Thread(target=orders.publish, args=(b"e",), kwargs={"timeout": 30})
        waits.start()
        revoked(orders)
        with pytest.raises(DeliveryRevoked):
            held.ack()
        assert orders.receive(timeout=30) == b"a"
        waits.join()


def test_with_asyncio_as_well(broker: Broker, vhost: str) -> None:
    orders = broker.declare_queue(
        "orders", slots=4, slow_consumer_threshold=ANY_TIME, slow_consumer_policy="disconnect"
    )
    orders.publish_many([b"a", b"b", b"c", b"d"])

    async def publish() -> None:
        async with aio.connect(f"shm://{vhost}") as waits:
            await (await waits.queue("orders")).publish(b"e", timeout=30)

    with shmbroker.connect(f"shm://{vhost}") as other:
        held = other.queue("orders").get(timeout=0)
        waits = threading.Thread(target=asyncio.run, args=(publish(),))
        waits.start()
        revoked(orders)
        with pytest.raises(DeliveryRevoked):
            held.ack()
        assert orders.receive(timeout=30) == b"a"
        waits.join()


def test_who_is_disconnected_finds_out_when_it_acknowledges(broker: Broker, vhost: str) -> None:
    orders = broker.declare_queue(
        "orders", slow_consumer_threshold=ANY_TIME, slow_consumer_policy="disconnect"
    )
    orders.publish_many([b"a", b"b", b"c"])
    others = broker.declare_queue("others")
    others.publish(b"x")
    other = shmbroker.connect(f"shm://{vhost}")
    slow, elsewhere = other.queue("orders").get(timeout=0), other.queue("others").get(timeout=0)
    broker.repair_for(0)
    broker.repair_for(0)
    with orders.get(timeout=0) as message:  # with one more delivery
        assert (message.body, message.deliveries) == (b"a", 1)
    with pytest.raises(DeliveryRevoked):
        slow.ack()
    with pytest.raises(ConnectionClosed, match="it was a slow consumer; connect again"):
        other.queue("orders").get(timeout=0)
    with pytest.raises(ConnectionClosed):
        elsewhere.ack()
    assert other.participant not in {each.id for each in broker.participants()}
    assert others.receive(timeout=0) == b"x"  # it has left, with all that it held
    other.close()
    with shmbroker.connect(f"shm://{vhost}") as again:
        assert again.queue("orders").receive(timeout=0) == b"b"


@pytest.mark.parametrize("kind", [{"single_active": True}, {"groups": True}])
@pytest.mark.parametrize("by", ["threshold", "operator"])
def test_who_hangs_is_the_active_consumer_no_longer(
    broker: Broker, other: Broker, kind: dict[str, bool], by: str
) -> None:
    orders = broker.declare_queue(
        "orders", slow_consumer_threshold=ANY_TIME, slow_consumer_policy="disconnect", **kind
    )
    for body in (b"a", b"b"):
        orders.publish(body, group="g")
    hangs = other.queue("orders").get(timeout=0)
    if by == "operator":
        (it,) = [each for each in broker.participants() if each.id == other.participant]
        assert not disconnected(broker, it, timeout=0)
    else:
        broker.repair_for(0)
        broker.repair_for(0)
    assert orders.receive_many(8, timeout=0) == [b"a", b"b"]
    with pytest.raises(DeliveryRevoked):
        hangs.ack()


def test_what_was_taken_away_is_not_committed(broker: Broker, vhost: str) -> None:
    orders = broker.declare_queue(
        "orders", slow_consumer_threshold=ANY_TIME, slow_consumer_policy="disconnect"
    )
    orders.publish_many([b"a", b"b"])
    with shmbroker.connect(f"shm://{vhost}") as other:
        queue = other.queue("orders")
        transaction = other.transaction()
        transaction.ack(queue.get(timeout=0))
        broker.repair_for(0)
        broker.repair_for(0)
        with pytest.raises(DeliveryRevoked):  # nothing has happened
            transaction.commit(timeout=0)
    assert orders.receive_many(8, timeout=0) == [b"a", b"b"]


def test_bad_thresholds(broker: Broker) -> None:
    for threshold in (0, -1, float("nan"), True, "10"):
        with pytest.raises(InvalidArgument, match="number of messages a second"):
            broker.declare_queue("q", slow_consumer_threshold=threshold)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="slow_consumer_policy is notify, disconnect"):
        broker.declare_queue("q", slow_consumer_policy="kill")  # type: ignore[arg-type]


def test_slow_ones_that_are_killed_lose_nothing(broker: Broker, vhost: str, tmp_path: Path) -> None:
    """Whoever disconnects them, and whenever they die: each message is done once, or comes back."""
    orders = broker.declare_queue(
        "orders",
        slots=1024,
        max_deliveries=None,
        slow_consumer_threshold=ANY_TIME,
        slow_consumer_policy="disconnect",
    )
    random = Random(9)

    def work(theirs: Broker, confirm: Confirm) -> None:
        queue = theirs.queue("orders")
        try:
            while True:
                with queue.get(timeout=60) as message:
                    number = int(message.body)
                confirm(number)
        except (DeliveryRevoked, ConnectionClosed):
            pass

    for _ in range(KILLS):
        orders.publish_many([b"%d" % number for number in range(100)])
        with dying(vhost, work, tmp_path, random) as confirmed:
            for _ in range(random.randrange(6)):
                broker.repair_for(0)
        broker.repair()
        left = [int(message.body) for message in orders.consume(timeout=0)]
        assert not set(left) & set(confirmed)
        assert len(left) + len(confirmed) in (99, 100)  # acknowledged, and not yet told
        assert orders.statistics().depth == 0
