"""A queue from which nothing is taken: each consumer sees all messages."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, InvalidArgument, Queue, QueueFull, aio
from shmbroker.perf.machine.process import Process
from tests.support.host import PATIENCE
from tests.support.killed import KILLS
from tests.support.victim import Confirm, dying


@pytest.fixture
def cache(broker: Broker) -> Queue:
    return broker.declare_queue("cache", slots=16, last_value=True, non_destructive=True)


def seen(queue: Queue, **more: Any) -> list[bytes]:
    return [message.body for message in queue.consume(timeout=0, **more)]


def test_each_consumer_sees_all(broker: Broker, vhost: str) -> None:
    news = broker.declare_queue("news", slots=16, non_destructive=True)
    for body in (b"a", b"b"):
        news.publish(body)
    first = news.consume(timeout=0)
    assert next(first).body == b"a"
    assert seen(news) == [b"a", b"b"]
    with shmbroker.connect(f"shm://{vhost}") as other:
        assert seen(other.queue("news")) == [b"a", b"b"]
    news.publish(b"c")
    assert [message.body for message in first] == [b"b", b"c"]
    assert news.statistics().depth == 3


def test_a_consumer_waits_for_the_next(broker: Broker, vhost: str) -> None:
    news = broker.declare_queue("news", slots=16, non_destructive=True)
    with shmbroker.connect(f"shm://{vhost}") as other:
        later = threading.Timer(0.01, other.queue("news").publish, (b"late",))
        later.start()
        assert next(news.consume(timeout=30)).body == b"late"
        later.join()


def published_before(url: str, folder: Path, body: bytes, **options: Any) -> None:
    """By a program that has ended; and nobody else is there."""

    def publishes() -> None:
        with shmbroker.connect(url) as broker:
            broker.queue("news").publish(body, **options)
            os._exit(0)

    assert Process(publishes, folder / "errors").has_ended(PATIENCE)


def test_who_waits_gets_what_was_scheduled(broker: Broker, url: str, tmp_path: Path) -> None:
    news = broker.declare_queue("news", slots=16, non_destructive=True)
    published_before(url, tmp_path, b"later", deliver_after=0.01)
    assert next(news.consume(timeout=PATIENCE)).body == b"later"


def test_what_expires_leaves_while_somebody_waits(
    broker: Broker, url: str, tmp_path: Path
) -> None:
    news = broker.declare_queue("news", slots=16, non_destructive=True, expiry_queue="late")
    late = broker.queue("late")
    published_before(url, tmp_path, b"old", ttl=0.001)
    ends_at = time.monotonic() + PATIENCE
    while late.statistics().depth == 0 and time.monotonic() < ends_at:
        assert list(news.consume(timeout=0.2)) == []
    assert late.receive(timeout=0) == b"old"


def test_nothing_is_dealt_with(broker: Broker) -> None:
    news = broker.declare_queue("news", slots=16, non_destructive=True)
    news.publish(b"a", key="k", properties={"n": 1})
    for message in news.consume(timeout=0):
        with message:
            message.ack()
        message.give_back()
        assert (message.key, message.properties, message.is_in_hand) == ("k", {"n": 1}, False)
        with pytest.raises(InvalidArgument, match="nobody can reject it"):
            message.reject()
        with broker.transaction() as transaction:
            transaction.publish(news, b"b")
            with pytest.raises(InvalidArgument, match="acknowledges messages of queues"):
                transaction.ack(message)
        break
    assert seen(news) == [b"a", b"b"]


@pytest.mark.parametrize("verb", ["get", "receive", "get_many", "receive_many", "select"])
def test_nothing_is_taken(verb: str, cache: Queue) -> None:
    cache.publish(b"a", key="k")
    wanted = {"get_many": [1], "receive_many": [1]}.get(verb, [])
    if verb == "select":
        wanted = [shmbroker.ipc.selector.selection.Selection("n = 1")]
    with pytest.raises(InvalidArgument, match="'cache' is non_destructive: nothing is taken"):
        getattr(cache, verb)(*wanted, timeout=0)


@pytest.mark.parametrize(
    "settings",
    [
        {"max_deliveries": 3},
        {"dead_letter": "dead"},
        {"priorities": True},
        {"slow_consumer_threshold": 1},
    ],
)
def test_what_it_cannot_have(broker: Broker, settings: dict[str, Any]) -> None:
    (name,) = settings
    with pytest.raises(InvalidArgument, match=f"a non_destructive queue has no {name}: "):
        broker.declare_queue("news", non_destructive=True, **settings)
    broker.settings("#", **settings)  # for others
    broker.declare_queue("news", non_destructive=True)


def test_it_is_not_durable(broker: Broker) -> None:
    with pytest.raises(InvalidArgument, match="a non_destructive queue has no durable: "):
        broker.declare_queue("news", non_destructive=True, durable=True)


def test_when_it_is_full(broker: Broker) -> None:
    news = broker.declare_queue("news", slots=4, non_destructive=True)
    assert news.explain()["when_full"].value == "drop-oldest"
    for number in range(6):
        news.publish(b"%d" % number)
    assert seen(news) == [b"2", b"3", b"4", b"5"]
    assert news.statistics().dropped == 2
    firm = broker.declare_queue("firm", slots=4, non_destructive=True, when_full="fail")
    for number in range(4):
        firm.publish(b"%d" % number)
    with pytest.raises(QueueFull):
        firm.publish(b"4")
    with pytest.raises(InvalidArgument, match="producers would wait for ever"):
        broker.declare_queue("never", non_destructive=True, when_full="block")
    brief = broker.declare_queue(
        "brief", slots=4, non_destructive=True, when_full="block", ttl_max=0.01
    )
    for number in range(6):
        brief.publish(b"%d" % number, timeout=30)
    assert brief.statistics().expired >= 2


def test_what_is_expired_is_not_seen(cache: Queue) -> None:
    cache.publish(b"late", key="a", ttl=1e-9)
    cache.publish(b"good", key="b")
    assert seen(cache) == [b"good"]
    assert cache.value("a") is None
    assert cache.expire() == 1


def test_a_cache(cache: Queue) -> None:
    for number in range(200):
        cache.publish(b"%d" % number, key=f"{number % 5}")
        value = cache.value(f"{number % 5}")
        assert value is not None
        assert value.body == b"%d" % number
    assert sorted(seen(cache)) == [b"195", b"196", b"197", b"198", b"199"]
    for number in range(20):  # more than it can hold: the oldest goes
        cache.publish(b"new", key=f"new {number}")
    assert cache.value("0") is None
    assert cache.value("new 19") is not None


def test_a_selector(broker: Broker) -> None:
    news = broker.declare_queue("news", slots=16, non_destructive=True)
    for number in range(4):
        news.publish(b"%d" % number, properties={"n": number}, key="k" * number)
    assert seen(news, selector="n > 1") == [b"2", b"3"]


def test_what_was_carried_is_not_seen_again(cache: Queue) -> None:
    cache.publish(b"quiet", key="quiet")
    consumer = cache.consume(timeout=0)
    assert next(consumer).body == b"quiet"
    for number in range(100):
        cache.publish(b"%d" % number, key="busy")
        assert next(consumer).body == b"%d" % number
    assert cache.statistics().carried > 0
    assert next(consumer, None) is None
    assert sorted(seen(cache)) == [b"99", b"quiet"]


def test_moving_away_and_purging(broker: Broker) -> None:
    news = broker.declare_queue("news", slots=16, non_destructive=True)
    other = broker.declare_queue("other")
    for body in (b"a", b"b", b"c"):
        news.publish(body)
    assert news.move_to(other, 1) == 1
    assert seen(news) == [b"b", b"c"]
    assert news.purge() == 2
    assert seen(news) == []


def test_it_can_be_awaited(vhost: str, cache: Queue) -> None:
    async def awaited() -> list[bytes]:
        async with aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.queue("cache")
            await queue.publish(b"1", key="eur")
            await queue.publish(b"2", key="eur")
            await queue.publish(b"3", key="usd")
            found = []
            async for message in queue.consume(timeout=0):
                async with message:
                    found.append(message.body)
            return found

    assert asyncio.run(awaited()) == [b"2", b"3"]


def test_whenever_a_producer_is_killed_a_consumer_sees_the_newest(
    broker: Broker, vhost: str, cache: Queue, tmp_path: Path
) -> None:
    random = Random(7)
    keys = 4
    consumer = cache.consume(timeout=0)
    latest: dict[str | None, bytes] = {}
    start = 0

    def work(theirs: Broker, confirm: Confirm) -> None:
        queue = theirs.queue("cache")
        for number in range(start, 1 << 20):
            queue.publish(b"%d" % number, key=f"{number % keys}")
            confirm(number)

    for _ in range(KILLS):
        with dying(vhost, work, tmp_path, random) as confirmed:
            for _ in range(random.randrange(20)):
                latest.update((each.key, each.body) for each in consumer)
                consumer = cache.consume(timeout=0)
        broker.repair()
        latest.update((each.key, each.body) for each in consumer)
        consumer = cache.consume(timeout=0)
        for number in confirmed[-keys:]:
            assert latest[f"{number % keys}"] in (b"%d" % number, b"%d" % (number + keys))
        assert len(latest) == cache.statistics().depth
        start = max([start, *(number + 2 * keys for number in confirmed)])
