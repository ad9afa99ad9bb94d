"""A participant is disconnected by another one: it is told, and what it has in hand goes back."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import (
    Broker,
    ConnectionClosed,
    DeliveryRevoked,
    Empty,
    InvalidArgument,
    QueueFull,
    SystemRefused,
)
from shmbroker.core.layout import PARTICIPANT_LIST
from shmbroker.ipc.connection.disconnecting import disconnected
from shmbroker.ipc.vhost.participants import ParticipantInfo

WHY = "disconnected by an operator"
PATIENCE = 60.0


def seen(broker: Broker, other: Broker) -> ParticipantInfo:
    [found] = [each for each in broker.participants() if each.id == other.participant]
    return found


def told(wait: Callable[[], object], leave: Callable[[], None]) -> threading.Thread:
    """A thread that waits until it is told to leave, and does."""

    def run() -> None:
        with pytest.raises(ConnectionClosed, match=WHY):
            wait()
        leave()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


async def finds_out(broker: Broker, other: shmbroker.aio.Broker, task: asyncio.Task[Any]) -> None:
    """It waits in a task, and leaves."""
    it = seen(broker, other._sync)
    leaves = asyncio.create_task(asyncio.to_thread(disconnected, broker, it, PATIENCE))
    with pytest.raises(ConnectionClosed, match=WHY):
        await task
    await other.close()
    assert await leaves


def test_one_that_waits_for_a_message_leaves_and_gives_all_back(broker: Broker, vhost: str) -> None:
    orders, idle = broker.declare_queue("orders"), broker.declare_queue("idle")
    orders.publish_many([b"a", b"b"])
    other = shmbroker.connect(f"shm://{vhost}", name="other")
    held = other.queue("orders").get(timeout=0)
    it = seen(broker, other)
    waits = told(lambda: other.queue("idle").get(timeout=PATIENCE), other.close)
    assert disconnected(broker, it, PATIENCE)
    waits.join()
    with orders.get(timeout=0) as message:
        assert (message.body, message.deliveries) == (b"a", 1)
    assert it.id not in {each.id for each in broker.participants()}
    with pytest.raises(ConnectionClosed):
        held.ack()
    [note] = [each.text for each in broker.errors() if WHY in each.text]
    assert note.startswith(f"participant {it.id} (other, pid ")
    assert disconnected(broker, it, 0)  # that it has left is no error
    assert len(idle) == 0


def test_one_that_waits_for_room_does(broker: Broker, vhost: str) -> None:
    full = broker.declare_queue("full", slots=2)
    full.publish_many([b"a", b"b"])
    other = shmbroker.connect(f"shm://{vhost}")
    waits = told(lambda: other.queue("full").publish(b"c", timeout=PATIENCE), other.close)
    assert disconnected(broker, seen(broker, other), PATIENCE)
    waits.join()
    assert full.receive_many() == [b"a", b"b"]


def test_one_that_waits_in_asyncio_does(broker: Broker, vhost: str) -> None:
    broker.declare_queue("orders")

    async def waits() -> None:
        async with await shmbroker.aio.connect(f"shm://{vhost}") as other:
            task = asyncio.create_task((await other.queue("orders")).get(timeout=PATIENCE))
            await finds_out(broker, other, task)

    asyncio.run(waits())


def test_one_that_settles_finds_out(broker: Broker, vhost: str) -> None:
    broker.declare_queue("orders").publish_many([b"a", b"b"])
    other = shmbroker.connect(f"shm://{vhost}")
    orders = other.queue("orders")
    held = orders.get(timeout=0)
    it = seen(broker, other)
    assert not disconnected(broker, it, 0)
    assert seen(broker, other).state == "closing"
    with pytest.raises(DeliveryRevoked):
        held.ack()
    with pytest.raises(ConnectionClosed, match=f"{WHY}: connect again"):
        orders.publish(b"c")
    assert disconnected(broker, it, 0)
    with shmbroker.connect(f"shm://{vhost}") as again:
        assert again.queue("orders").receive_many() == [b"a", b"b"]


def test_one_that_only_publishes_goes_on_until_it_waits(broker: Broker, vhost: str) -> None:
    orders, idle = broker.declare_queue("orders"), broker.declare_queue("idle")
    other = shmbroker.connect(f"shm://{vhost}")
    producer = other.queue("orders")
    producer.publish(b"a")
    it = seen(broker, other)
    assert not disconnected(broker, it, 0)
    producer.publish(b"b")
    waits = told(lambda: other.queue("idle").get(timeout=PATIENCE), other.close)
    assert disconnected(broker, it, PATIENCE)
    waits.join()
    assert orders.receive_many() == [b"a", b"b"]
    assert len(idle) == 0


def test_a_transaction_with_what_it_held_does_not_happen(broker: Broker, vhost: str) -> None:
    orders, results = broker.declare_queue("orders"), broker.declare_queue("results")
    orders.publish(b"a")
    other = shmbroker.connect(f"shm://{vhost}")
    held = other.queue("orders").get(timeout=0)
    transaction = other.transaction()
    transaction.publish("results", b"done")
    transaction.ack(held)
    assert not disconnected(broker, seen(broker, other), 0)
    with pytest.raises((DeliveryRevoked, shmbroker.TransactionRolledBack, ConnectionClosed)):
        transaction.commit()
    other.close()
    assert orders.receive_many() == [b"a"]
    assert len(results) == 0


def test_one_with_more_queues_than_its_list_has_gives_all_back(broker: Broker, vhost: str) -> None:
    names = [f"q{number}" for number in range(PARTICIPANT_LIST + 3)]
    queues = [broker.declare_queue(name, slots=4) for name in names]
    for queue in queues:
        queue.publish(b"a")
    with shmbroker.connect(f"shm://{vhost}") as other:
        held = [other.queue(name).get(timeout=0) for name in names]
        assert not disconnected(broker, seen(broker, other), 0)
        assert [queue.receive(timeout=0) for queue in queues] == [b"a"] * len(held)


def test_who_looks_after_the_vhost_stays(broker: Broker, vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as other:
        other.repair_for(0)
        with pytest.raises(InvalidArgument, match="looks after the vhost: stop its process"):
            disconnected(broker, seen(broker, other), 0)
        assert seen(broker, other).state == "live"


def test_an_observer_disconnects_nobody(broker: Broker, vhost: str) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}", observe=True) as looks,
        pytest.raises(InvalidArgument, match="only observes"),
    ):
        disconnected(looks, seen(broker, broker), 0)


def test_a_mover_that_finds_out_leaves_it_to_the_next_call(broker: Broker, vhost: str) -> None:
    """It cannot wait for its own end."""
    broker.declare_queue("orders")
    broker.declare_queue("held").publish(b"a")
    serving = shmbroker.connect(f"shm://{vhost}")
    serving.queue("orders").publish(b"", deliver_after=3600)
    other = shmbroker.connect(f"shm://{vhost}", name="other")
    other.queue("held").get(timeout=0)
    with pytest.raises(Empty):
        other.queue("orders").get(timeout=0)  # so its mover stands by
    it = seen(broker, other)
    assert not disconnected(broker, it, 0)
    serving.close()
    until = time.monotonic() + PATIENCE
    while not other.is_closed:
        assert time.monotonic() < until
        time.sleep(0.001)
    other.close()
    assert it.id not in {each.id for each in broker.participants()}
    assert broker.queue("held").receive(timeout=0) == b"a"


def test_what_a_commit_that_failed_was_to_acknowledge_goes_back(broker: Broker, vhost: str) -> None:
    orders = broker.declare_queue("orders")
    broker.declare_queue("full", slots=2).publish_many([b"1", b"2"])
    orders.publish(b"a")
    other = shmbroker.connect(f"shm://{vhost}")
    transaction = other.transaction()
    transaction.ack(other.queue("orders").get(timeout=0))
    transaction.publish("full", b"3")
    with pytest.raises(QueueFull):
        transaction.commit(timeout=0)
    assert not disconnected(broker, seen(broker, other), 0)
    assert orders.receive(timeout=0) == b"a"
    broker.queue("full").purge()
    with pytest.raises((DeliveryRevoked, shmbroker.TransactionRolledBack, ConnectionClosed)):
        transaction.commit(timeout=0)
    other.close()


def test_one_that_waits_to_commit_in_asyncio_finds_out(broker: Broker, vhost: str) -> None:
    broker.declare_queue("full", slots=2).publish_many([b"1", b"2"])

    async def waits() -> None:
        async with await shmbroker.aio.connect(f"shm://{vhost}") as other:
            transaction = other.transaction()
            transaction.publish("full", b"3")
            task = asyncio.create_task(transaction.commit(timeout=PATIENCE))
            await asyncio.sleep(0)
            await finds_out(broker, other, task)

    asyncio.run(waits())


def test_what_cannot_be_repaired_of_others_does_not_end_a_commit_in_asyncio(
    broker: Broker, vhost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = broker.declare_queue("small", slots=2)

    async def commits() -> None:
        tries = asyncio.Event()

        def fails(_: Broker) -> None:
            tries.set()
            raise SystemRefused("repairing vhost: Too many open files")

        monkeypatch.setattr(Broker, "repair", fails)
        async with shmbroker.aio.connect(f"shm://{vhost}") as other:
            transaction = other.transaction()
            transaction.publish("small", b"third")
            task = asyncio.create_task(transaction.commit(timeout=PATIENCE))
            await asyncio.wait_for(tries.wait(), PATIENCE)
            assert queue.receive(timeout=0) == b"first"
            await task

    for body in (b"first", b"second"):
        queue.publish(body)
    asyncio.run(commits())
    assert [queue.receive(timeout=0) for _ in range(2)] == [b"second", b"third"]
