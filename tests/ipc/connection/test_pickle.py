"""Handles that are pickled into a worker: it opens the vhost, and the queue, for itself."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
from typing import Any

import pytest

import shmbroker
from shmbroker import aio

SPAWN = multiprocessing.get_context("spawn")


def work(queue: shmbroker.Queue, broker: shmbroker.Broker, answers: Any) -> None:
    with queue.get(timeout=10) as message:
        answers.put((message.body, broker.participant, queue._broker is broker, repr(queue)))
    broker.queue("answers").publish(b"done")


def test_a_queue_goes_into_a_spawned_worker(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("orders")
    done = broker.declare_queue("answers")
    queue.publish(b"work")
    answers = SPAWN.Queue()
    process = SPAWN.Process(target=work, args=(queue, broker, answers))
    process.start()
    body, participant, is_one_connection, shown = answers.get(timeout=60)
    assert done.receive(timeout=10) == b"done"
    process.join(60)
    assert process.exitcode == 0
    assert body == b"work"
    assert participant != broker.participant
    assert is_one_connection
    assert shown == repr(queue)


def work_in_asyncio(queue: aio.Queue, answers: Any) -> None:
    async def main() -> None:
        async with await queue.get(timeout=10) as message:
            answers.put(message.value)
        await queue._broker.close()

    asyncio.run(main())


def test_so_does_one_of_asyncio_with_its_serializer(url: str) -> None:
    answers = SPAWN.Queue()

    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("orders", serializer="json")
            await queue.publish({"a": [1]})
            process = SPAWN.Process(target=work_in_asyncio, args=(queue, answers))
            process.start()
            assert await asyncio.to_thread(answers.get, timeout=60) == {"a": [1]}
            await asyncio.to_thread(process.join, 60)
            assert process.exitcode == 0

    asyncio.run(main())


def test_how_it_was_connected_goes_along(url: str) -> None:
    with shmbroker.connect(url, name="me", spin=1e-6) as broker, again_of(broker) as again:
        assert [each.name for each in broker.participants()] == ["me", "me"]
        assert again.vhost == broker.vhost
    with shmbroker.connect(url, observe=True) as looking, again_of(looking) as again:
        assert again.participant == 0


def again_of(broker: shmbroker.Broker) -> shmbroker.Broker:
    again: shmbroker.Broker = pickle.loads(pickle.dumps(broker))
    return again


def test_producers_subscriptions_and_exchanges_too(broker: shmbroker.Broker) -> None:
    durable = broker.declare_queue("safe", durable=True)
    assert type(pickle.loads(pickle.dumps(durable))) is shmbroker.DurableQueue
    producer = broker.declare_queue("orders").producer("p")
    producer.publish(b"x")
    assert pickle.loads(pickle.dumps(producer)).last_sequence == 1
    exchange = broker.declare_exchange("e", "fanout")
    subscription = broker.subscription("s", exchange="e", shared=True, serializer="json")
    again = pickle.loads(pickle.dumps(subscription))
    assert pickle.loads(pickle.dumps(exchange)).publish(b"[1]") == 1
    assert again.receive(timeout=10) == [1]


def test_what_belongs_to_a_process_says_so(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("orders")
    queue.publish(b"x")
    with pytest.raises(TypeError, match="belongs to the process"):
        pickle.dumps(queue.get())
    with broker.transaction() as transaction, pytest.raises(TypeError, match="belongs to"):
        pickle.dumps(transaction)
    with pytest.raises(TypeError, match="belongs to"):
        pickle.dumps(queue.loan(1))
    with pytest.raises(TypeError, match="belongs to"):
        pickle.dumps(broker.subscribe("orders"))
