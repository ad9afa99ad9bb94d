"""A queue in a transaction, and what is published beside the transaction."""

from __future__ import annotations

import asyncio
import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import shmbroker
from shmbroker import aio
from shmbroker.ipc.queue import publishing
from shmbroker.ipc.queue.open_transaction import OPEN
from tests.ipc.aio.loop import run
from tests.ipc.transaction.test_transaction import bodies

BESIDE = "published beside the open transaction"


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Any:
    yield
    assert OPEN == []
    assert publishing._publish is publishing.publish_now


def test_a_queue_of_a_transaction_publishes_at_commit(
    broker: shmbroker.Broker, other: shmbroker.Broker
) -> None:
    orders = broker.declare_queue("orders")
    broker.declare_queue("invoices")
    with broker.transaction() as tx:
        tx.queue("orders").publish(b"a", key="k", properties={"n": 1})
        assert tx.queue(orders).publish_many([b"b", bytearray(b"c")]) == 2
        tx.publish("invoices", b"d")
        assert bodies(other.queue("orders")) == bodies(other.queue("invoices")) == []
    with other.queue("orders").get(timeout=0) as message:
        assert (message.body, message.key, message.properties) == (b"a", "k", {"n": 1})
    assert bodies(other.queue("orders")) == [b"b", b"c"]
    assert bodies(other.queue("invoices")) == [b"d"]
    with pytest.raises(ZeroDivisionError), broker.transaction() as tx:
        tx.queue("orders").publish(b"never")
        raise ZeroDivisionError
    assert bodies(orders) == []


VERBS: dict[str, Callable[[Any], list[Any]]] = {
    "get": lambda queue: [queue.get(timeout=0)],
    "get_nowait": lambda queue: [queue.get_nowait()],
    "get with a selector": lambda queue: [queue.get("n > 0", timeout=0)],
    "select": lambda queue: [queue.select("n > 0", timeout=0)],
    "get_many": lambda queue: queue.get_many(2, timeout=0),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("body", [b"x", b"x" * 100_000], ids=["small", "large"])
def test_what_it_takes_is_acknowledged_at_commit(
    broker: shmbroker.Broker, verb: str, body: bytes
) -> None:
    orders = broker.declare_queue("orders")
    for commits in (False, True):
        orders.publish(body, properties={"n": 1})
        tx = broker.transaction()
        for message in VERBS[verb](tx.queue("orders")):
            message.ack()
            assert not message.is_in_hand
            assert message.body == body
        assert orders.statistics().taken == 1
        if commits:
            tx.commit()
        else:
            tx.rollback()
            assert bodies(orders) == [body]
    assert (orders.statistics().depth, orders.statistics().taken) == (0, 0)


def test_receive_and_consume_in_a_transaction(broker: shmbroker.Broker) -> None:
    orders = broker.declare_queue("orders")
    orders.publish_many([b"%d" % number for number in range(8)])
    with pytest.raises(ZeroDivisionError), broker.transaction() as tx:
        assert tx.queue("orders").receive(timeout=0) == b"0"
        assert tx.queue("orders").receive_many(2, timeout=0) == [b"1", b"2"]
        with tx.queue("orders").get(timeout=0) as message:
            assert message.body == b"3"
        assert [each.body for each in tx.queue("orders").consume(timeout=0, prefetch=3)] == [
            b"4", b"5", b"6", b"7"
        ]  # fmt: skip
        assert len(tx) == 8
        raise ZeroDivisionError
    assert bodies(orders) == [b"%d" % number for number in range(8)]


def test_what_it_takes_and_does_not_acknowledge_is_given_back(broker: shmbroker.Broker) -> None:
    orders = broker.declare_queue("orders")
    orders.publish(b"a")
    with broker.transaction() as tx:
        tx.queue("orders").get(timeout=0)
    assert bodies(orders) == [b"a"]


PUBLISHING: dict[str, Callable[[shmbroker.Broker], Any]] = {
    "publish": lambda broker: broker.queue("q").publish(b"x"),
    "publish with options": lambda broker: broker.queue("q").publish(b"x", key="k"),
    "publish_nowait": lambda broker: broker.queue("q").publish_nowait(b"x"),
    "scheduled": lambda broker: broker.queue("q").publish(b"x", deliver_after=9),
    "publish_many": lambda broker: broker.queue("q").publish_many([b"x"]),
    "loan": lambda broker: broker.queue("q").loan(1).drop(),
    "producer": lambda broker: broker.queue("q").producer("p").publish(b"x"),
    "exchange": lambda broker: broker.exchange("").publish(b"x", key="q"),
}


@pytest.mark.parametrize("verb", PUBLISHING)
def test_publishing_beside_it_warns_once_and_names_the_place(
    broker: shmbroker.Broker, other: shmbroker.Broker, verb: str
) -> None:
    queue = broker.declare_queue("q")
    publish = PUBLISHING[verb]
    with broker.transaction():
        with pytest.warns(RuntimeWarning, match=BESIDE) as told:
            publish(broker)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            publish(broker)
            publish(other)
    assert [warning.filename for warning in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        publish(broker)
        with broker.transaction(warn=False):
            publish(broker)
        with broker.transaction() as tx:
            tx.publish(queue, b"x")
            publish(other)  # another connection
            aside = threading.Thread(target=publish, args=(broker,))  # another thread
            aside.start()
            aside.join()
            tx.commit()
            publish(broker)  # it is over
        with pytest.raises(RuntimeWarning, match=BESIDE), broker.transaction():
            publish(broker)


def test_a_request_beside_it_warns(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q")
    with (
        pytest.warns(RuntimeWarning, match=BESIDE),
        broker.transaction(),
        pytest.raises(shmbroker.NoReply),
    ):
        queue.request(b"x", timeout=0.01)


def test_a_transaction_that_is_dropped_open_watches_nothing(broker: shmbroker.Broker) -> None:
    tx = broker.transaction()
    tx.__enter__()
    del tx
    assert OPEN == []


def test_asyncio(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            orders = await broker.declare_queue("orders")
            await orders.publish_many([b"%d" % number for number in range(6)])
            with pytest.raises(ZeroDivisionError):
                async with broker.transaction() as tx:
                    ours = tx.queue("orders")
                    async with ours.get() as message:
                        assert message.body == b"0"
                    assert await ours.receive() == b"1"
                    (message,) = await ours.get_many(1)
                    message.ack()
                    assert [each.body async for each in ours.consume(timeout=0)] == [
                        b"3", b"4", b"5"
                    ]  # fmt: skip
                    ours.publish(b"never")
                    raise ZeroDivisionError
            async with broker.transaction() as tx:
                assert await tx.queue(orders).receive_many(9) == [b"%d" % n for n in range(6)]
                tx.publish("orders", b"a", properties={"n": 3})
                tx.queue("orders").publish_many([b"b"])
            async with broker.transaction() as tx:
                assert (await tx.queue("orders").get("n = 3")).body == b"a"
                assert (await tx.queue("orders").select("n = 3")).body == b"a"
            assert await orders.receive_many() == [b"a", b"b"]

    run(main())


def test_asyncio_warns_in_the_task_of_the_block(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q")
            is_open, is_done = asyncio.Event(), asyncio.Event()

            async def other_task() -> None:
                await is_open.wait()
                await queue.publish(b"x")
                is_done.set()

            async with asyncio.TaskGroup() as group:
                group.create_task(other_task())
                async with broker.transaction():
                    is_open.set()
                    await is_done.wait()
                    with pytest.warns(RuntimeWarning, match=BESIDE) as told:
                        await asyncio.gather(queue.publish(b"x"), queue.publish(b"x"))
                    assert len(told) == 1
            await queue.publish(b"x")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(main())


def test_a_queue_with_a_serializer(broker: shmbroker.Broker) -> None:
    orders = broker.declare_queue("orders", serializer="json")
    with broker.transaction() as tx:
        ours = tx.queue(orders)
        ours.publish({"n": 1})
        ours.publish_many([{"n": 2}, {"n": 3}])
    with broker.transaction() as tx:
        ours = tx.queue(orders)
        with ours.get(timeout=0) as message:
            assert message.value == {"n": 1}
        assert ours.receive(timeout=0) == {"n": 2}
        assert ours.receive_many(timeout=0) == [{"n": 3}]
    assert orders.publish_many([{"n": 4}]) == 1
    assert orders.receive(timeout=0) == {"n": 4}
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(ours)


def test_asyncio_with_a_serializer(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            orders = await broker.declare_queue("orders", serializer="json")
            assert await orders.publish_many([{"n": 1}, {"n": 2}]) == 2
            async with broker.transaction() as tx:
                assert await tx.queue(orders).receive() == {"n": 1}
                async with tx.queue(orders).get("$size > 0") as message:
                    assert message.value == {"n": 2}

    run(main())
