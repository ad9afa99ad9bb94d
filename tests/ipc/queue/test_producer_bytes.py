"""One participant's part of the arena: so that it leaves some to the others."""

from __future__ import annotations

import threading
from pathlib import Path
from random import Random

import pytest

import shmbroker
from shmbroker import Broker, InvalidArgument, MessageTooLarge, Queue, QueueFull
from tests.support.killed import KILLS
from tests.support.victim import Confirm, dying

SHARE = 1 << 20
LATER = 0.2
BODY = bytes(50_000)


@pytest.fixture
def orders(broker: Broker) -> Queue:
    return broker.declare_queue("orders", slots=4096, max_producer_bytes="1MiB", when_full="fail")


def fill(queue: Queue, body: bytes = BODY) -> int:
    """How many fit."""
    count = 0
    while True:
        try:
            queue.publish(body)
        except QueueFull:
            return count
        count += 1


def test_one_producer_leaves_room_for_others(orders: Queue, vhost: str) -> None:
    fitted = fill(orders)
    assert 15 <= fitted <= SHARE // len(BODY)
    with pytest.raises(QueueFull, match=r"'orders': this participant holds .* 1048576\)"):
        orders.publish(BODY)
    with shmbroker.connect(f"shm://{vhost}") as other:
        assert fill(other.queue("orders")) == fitted
    for _ in range(2 * fitted):
        orders.receive(timeout=0)
    assert fill(orders) == fitted


def test_it_counts_all_queues(broker: Broker, orders: Queue) -> None:
    plain = broker.declare_queue("plain", slots=4096)
    for _ in range(2 * SHARE // len(BODY)):
        plain.publish(BODY)
    assert fill(orders) == 0
    plain.purge()
    assert fill(orders) > 15  # memory of ours that is empty is returned


def test_small_messages_in_batches_and_loans(broker: Broker, orders: Queue) -> None:
    with pytest.raises(QueueFull, match="this participant holds") as told:
        orders.publish_many([bytes(1000)] * 3000, timeout=0)
    assert 0 < told.value.published < 1100
    assert orders.statistics().bytes <= SHARE
    with pytest.raises(QueueFull, match="this participant holds"):
        orders.loan(100_000)
    with broker.transaction() as transaction, pytest.raises(QueueFull, match="this participant"):
        transaction.publish(orders, BODY)


def test_blocking_waits_for_the_consumer(broker: Broker, vhost: str) -> None:
    broker.declare_queue("orders", slots=4096, max_producer_bytes=SHARE)
    with shmbroker.connect(f"shm://{vhost}") as theirs:
        queue = theirs.queue("orders")

        def produce() -> None:
            for _ in range(100):
                queue.publish(BODY, timeout=30)

        producer = threading.Thread(target=produce)
        producer.start()
        orders = broker.queue("orders")
        for _ in range(100):
            assert orders.receive(timeout=30) == BODY
            assert orders.statistics().bytes <= SHARE
        producer.join()
        with pytest.raises(QueueFull, match="this participant holds"):
            for _ in range(100):
                queue.publish(BODY, timeout=0.001)


def test_drop_oldest_drops_nobody_elses(broker: Broker, vhost: str) -> None:
    orders = broker.declare_queue(
        "orders", slots=4096, max_producer_bytes=SHARE, when_full="drop-oldest"
    )
    with shmbroker.connect(f"shm://{vhost}") as other:
        other.queue("orders").publish(b"theirs")
    with pytest.raises(QueueFull, match="this participant holds"):
        for _ in range(100):
            orders.publish(BODY, timeout=0)
    assert orders.statistics().dropped == 0
    assert orders.receive(timeout=0) == b"theirs"


def test_what_can_never_fit(broker: Broker, orders: Queue) -> None:
    with pytest.raises(MessageTooLarge, match="max_producer_bytes 1048576"):
        orders.publish(bytes(SHARE + 1))
    with pytest.raises(InvalidArgument, match="at least 4096"):
        broker.declare_queue("q", max_producer_bytes=100)


def test_what_is_scheduled_is_moved_whoever_does_it(orders: Queue) -> None:
    """It is in the arena already: a limit of whoever moves it would stop the schedule."""
    orders.publish(bytes(SHARE + 1), deliver_after=LATER)
    orders.publish(b"behind it", deliver_after=LATER)
    with pytest.raises(QueueFull, match="this participant holds"):
        for _ in range(100):
            orders.publish(BODY)
    bodies = [orders.receive(timeout=30) for _ in range(orders.statistics().depth + 2)]
    assert bodies[-2:] == [bytes(SHARE + 1), b"behind it"]
    with pytest.raises(MessageTooLarge, match="max_producer_bytes 1048576"):
        orders.publish(bytes(SHARE + 1))


def test_what_the_dead_have_published_is_nobodys_share(
    orders: Queue, broker: Broker, vhost: str, tmp_path: Path
) -> None:
    """Whoever gets the id of one that was killed may fill all of its share."""
    random = Random(10)
    fitted = fill(orders)
    for _ in range(fitted):
        orders.receive(timeout=0)
    large = broker.declare_queue("large", slots=4096)

    def work(theirs: Broker, confirm: Confirm) -> None:
        queue, other = theirs.queue("orders"), theirs.queue("large")
        for number in range(1 << 20):
            try:
                queue.publish(BODY)
            except QueueFull:
                other.publish(bytes(300_000)) if number < 40 else other.statistics()
            confirm(number)

    for _ in range(KILLS):
        with dying(vhost, work, tmp_path, random):
            pass
        broker.repair()
        with shmbroker.connect(f"shm://{vhost}") as heir:  # the id of the dead one is free again
            assert fill(heir.queue("orders")) == fitted
        orders.purge()
        large.purge()
