"""What a full queue does, and when it is full."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, Empty, InvalidArgument, Queue, QueueFull, aio
from tests.support.killed import KILLS
from tests.support.victim import Confirm, dying


def bodies(queue: Queue) -> list[bytes]:
    return [message.body for message in queue.browse()]


def test_max_messages(broker: Broker) -> None:
    orders = broker.declare_queue("orders", slots=16, max_messages=3)
    with pytest.raises(QueueFull, match="3 of 4 messages were published") as told:
        orders.publish_many([b"a", b"b", b"c", b"d"], timeout=0)
    assert told.value.published == 3
    with pytest.raises(QueueFull, match="it holds max_messages, 3, that nobody"):
        orders.publish(b"d", timeout=0)
    with pytest.raises(QueueFull):
        orders.publish(b"d", key="with a key", timeout=0)
    with pytest.raises(QueueFull), orders.loan(1) as loan:
        loan.publish(timeout=0)
    message = orders.get_nowait()
    with pytest.raises(QueueFull):
        orders.publish_nowait(b"d")  # it is in our hand, and may come back
    message.ack()
    orders.publish_nowait(b"d")
    assert bodies(orders) == [b"b", b"c", b"d"]


def test_block_waits_for_room_until_the_timeout(broker: Broker) -> None:
    orders = broker.declare_queue("orders", max_messages=1)
    orders.publish(b"a")
    before = time.monotonic()
    with pytest.raises(QueueFull):
        orders.publish(b"b", timeout=0.05)
    assert time.monotonic() - before >= 0.05
    thread = threading.Thread(target=lambda: orders.publish(b"b", timeout=30))
    thread.start()
    assert orders.receive() == b"a"
    thread.join()
    assert bodies(orders) == [b"b"]


def test_fail_does_not_wait(broker: Broker) -> None:
    orders = broker.declare_queue("orders", slots=2, when_full="fail")
    for _ in range(2):
        orders.publish(b"a")
    with pytest.raises(QueueFull):
        orders.publish(b"b")  # without a timeout, and yet it comes back
    with pytest.raises(QueueFull), orders.loan(1) as loan:
        loan.view[:] = b"b"
    with pytest.raises(QueueFull, match=r"0 of 1 messages .* its 2 slots hold") as told:
        orders.publish_many([b"b"])
    assert told.value.published == 0


@pytest.mark.parametrize("limits", [{"slots": 4}, {"slots": 64, "max_messages": 4}])
def test_drop_oldest_drops_and_counts(broker: Broker, limits: dict[str, Any]) -> None:
    prices = broker.declare_queue("prices", when_full="drop-oldest", dead_letter="dead", **limits)
    for number in range(8):
        prices.publish(b"%d" % number)
    assert bodies(prices) == [b"4", b"5", b"6", b"7"]
    assert prices.statistics().dropped == 4
    assert prices.publish_many([b"8", b"9"]) == 2
    with prices.loan(2) as loan:
        loan.view[:] = b"10"
    assert bodies(prices) == [b"7", b"8", b"9", b"10"]
    assert prices.statistics().dropped == 7
    assert broker.queue("dead").statistics().depth == 0  # they were not delivered in vain


def test_drop_oldest_takes_nothing_out_of_a_hand(broker: Broker) -> None:
    prices = broker.declare_queue("prices", slots=2, when_full="drop-oldest")
    prices.publish(b"a")
    prices.publish(b"b")
    message = prices.get_nowait()
    with pytest.raises(QueueFull):
        prices.publish(b"c", timeout=0.01)
    assert message.body == b"a"
    message.ack()
    prices.publish(b"c", timeout=0.01)
    assert bodies(prices) == [b"b", b"c"]


def test_a_transaction_keeps_to_them(broker: Broker) -> None:
    orders = broker.declare_queue("orders", slots=16, max_messages=2)
    orders.publish(b"a")
    with pytest.raises(QueueFull), broker.transaction(timeout=0) as tx:
        tx.publish(orders, b"b")
        tx.publish(orders, b"c")
    with broker.transaction(timeout=0) as tx:
        tx.ack(orders.get_nowait())
        tx.publish(orders, b"b")
        tx.publish(orders, b"c")
    assert bodies(orders) == [b"b", b"c"]
    tx = broker.transaction()
    for body in (b"d", b"e", b"f"):
        tx.publish(orders, body)
    with pytest.raises(InvalidArgument, match="3 messages to queue 'orders', which holds 2"):
        tx.commit()


def test_a_transaction_drops_the_oldest_too(broker: Broker) -> None:
    ring = broker.declare_queue("ring", slots=8, max_messages=2, when_full="drop-oldest")
    ring.publish_many([b"a", b"b"])
    with broker.transaction(timeout=0) as tx:
        tx.publish(ring, b"c")
        assert bodies(ring) == [b"a", b"b"]
    assert bodies(ring) == [b"b", b"c"]
    assert ring.statistics().dropped == 1


def test_what_is_expired_makes_room_for_a_transaction(broker: Broker) -> None:
    orders = broker.declare_queue("orders", slots=8, max_messages=1)
    orders.publish(b"a", ttl=1e-9)
    with broker.transaction(timeout=0) as tx:
        tx.publish(orders, b"b")
    assert bodies(orders) == [b"b"]


def test_max_bytes(broker: Broker) -> None:
    orders = broker.declare_queue("orders", slots=1024, max_bytes="256KiB")
    body = bytes(16 << 10)
    with pytest.raises(
        QueueFull, match=r"its messages take \d+ bytes, .* exceed max_bytes, 262144"
    ):
        for _ in range(64):
            orders.publish(body, timeout=0)
    there = orders.statistics()
    assert there.depth == 15  # the header of each counts
    assert there.bytes <= 256 << 10
    orders.receive()
    orders.publish(body, timeout=0)
    with pytest.raises(shmbroker.MessageTooLarge, match="at most 262144 bytes"):
        orders.publish(bytes(256 << 10))


def test_max_bytes_waits_too(broker: Broker) -> None:
    orders = broker.declare_queue("orders", slots=1024, max_bytes="256KiB")
    body = bytes(64 << 10)
    while True:
        try:
            orders.publish(body, timeout=0)
        except QueueFull:
            break
    there = orders.statistics().depth
    thread = threading.Thread(target=lambda: orders.publish(body, timeout=30))
    thread.start()
    for _ in range(there + 1):
        assert orders.receive(timeout=30) == body
    thread.join()


def test_several_producers_may_exceed_it_by_one_each(broker: Broker) -> None:
    orders = broker.declare_queue("orders", slots=256, max_messages=10, when_full="fail")

    def work() -> None:
        for _ in range(200):
            try:
                orders.publish(b"x")
            except QueueFull:
                return

    producers = [threading.Thread(target=work) for _ in range(4)]
    [each.start() for each in producers]
    [each.join() for each in producers]
    assert 10 <= orders.statistics().depth <= 13


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"max_messages": 0}, "max_messages is a positive number or None, not 0"),
        ({"max_messages": 1 << 25}, "max_messages is a number from 0 to 16777216"),
        ({"max_bytes": "many"}, "max_bytes is a size such as 65536 or '256MiB', not 'many'"),
        ({"max_bytes": -5}, "max_bytes is a positive number or None, not -5"),
        ({"max_bytes": "0"}, "max_bytes is a positive number or None, not 0"),
        ({"when_full": "explode"}, "when_full is block, fail, drop-oldest, page, not 'explode'"),
        ({"when_full": ["fail"]}, "when_full is block, fail, drop-oldest, page, not"),
    ],
)
def test_what_a_limit_cannot_be(broker: Broker, settings: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        broker.declare_queue("orders", **settings)
    assert broker.queues() == []


def test_declaring_it_otherwise_makes_no_other_queue(broker: Broker) -> None:
    broker.declare_queue("orders", max_messages=5)
    with pytest.raises(shmbroker.DeclaredDifferently):
        broker.declare_queue("orders", max_messages=6, dead_letter="dead")
    assert [queue.name for queue in broker.queues()] == ["orders"]


def test_a_default_that_is_spelled_out_is_the_same(broker: Broker) -> None:
    broker.declare_queue("orders", max_deliveries=3)
    broker.declare_queue("orders", max_deliveries=3, when_full="block", dead_letter=None)
    broker.declare_queue("other", when_full="block")
    broker.declare_queue("other")


@pytest.mark.parametrize("limits", [{"max_messages": 2}, {"max_bytes": "256KiB"}])
def test_asyncio(vhost: str, limits: dict[str, Any]) -> None:
    body = bytes(100 << 10)

    async def session() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            orders = await broker.declare_queue("orders", slots=64, **limits)
            with pytest.raises(QueueFull):
                for _ in range(64):
                    await orders.publish(body, timeout=0)
            used = time.process_time()
            with pytest.raises(QueueFull):
                await orders.publish(body, timeout=0.3)
            assert time.process_time() - used < 0.2  # it slept
            waits = asyncio.create_task(orders.publish(body, timeout=30))
            for _ in range((await orders.statistics()).depth + 1):
                await orders.receive(timeout=30)
            await waits
            with pytest.raises(Empty):
                await orders.receive(timeout=0)
            failing = await broker.declare_queue("failing", max_messages=1, when_full="fail")
            await failing.publish(b"x")
            async with asyncio.timeout(10):
                with pytest.raises(QueueFull):
                    await failing.publish(b"y")

    asyncio.run(session())


def test_nothing_is_lost_whenever_one_is_killed(broker: Broker, vhost: str, tmp_path: Path) -> None:
    orders = broker.declare_queue("orders", slots=64, max_messages=4)
    random = Random(7)

    def work(theirs: Broker, confirm: Confirm) -> None:
        queue = theirs.queue("orders")
        for number in range(1 << 20):
            queue.publish(b"%d" % number, timeout=30)
            confirm(number)

    for _ in range(KILLS):
        seen: list[bytes] = []
        with dying(vhost, work, tmp_path, random) as confirmed:
            for _ in range(random.randrange(200)):
                assert orders.statistics().depth <= 4
                seen.append(orders.receive(timeout=30))
        broker.repair()
        seen += [message.body for message in orders.consume(timeout=0)]
        assert len(confirmed) <= len(seen) <= len(confirmed) + 1  # published, and not yet told
        assert seen == [b"%d" % number for number in range(len(seen))]
    with pytest.raises(QueueFull) as told:
        orders.publish_many([b"x"] * 8, timeout=0)
    assert told.value.published == 4


def test_what_is_dropped_is_counted_whenever_one_is_killed(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    prices = broker.declare_queue("prices", slots=8, when_full="drop-oldest")
    random = Random(8)

    def work(theirs: Broker, confirm: Confirm) -> None:
        queue = theirs.queue("prices")
        for number in range(1 << 20):
            queue.publish(b"%d" % number)
            confirm(number)

    for _ in range(KILLS):
        start = prices.statistics()
        with dying(vhost, work, tmp_path, random) as confirmed:
            pass
        broker.repair()
        end = prices.statistics()
        published = end.published - start.published
        assert len(confirmed) <= published <= len(confirmed) + 1
        left = [message.body for message in prices.consume(timeout=0)]
        assert published - (end.dropped - start.dropped) - len(left) in (0, 1)
        assert left == [b"%d" % number for number in range(published - len(left), published)]
