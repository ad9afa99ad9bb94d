"""Whoever is many laps of a ring behind: words tell laps modulo 2^17, positions have 48 bits."""

from __future__ import annotations

import asyncio

import pytest

from shmbroker import Broker, DeliveryRevoked, Queue, Ring, aio
from shmbroker.core import layout
from shmbroker.core.codes import GONE, OK
from shmbroker.ipc._native import ffi, lib

SLOTS = 2
LAPS = layout.LAP_MASK + 1
FAR = [LAPS // 2 - 1, LAPS // 2, LAPS // 2 + 1, LAPS - 1, LAPS, LAPS + 1]
"""Around half of the range of laps, and around all of it."""


@pytest.fixture
def queue(broker: Broker) -> Queue:
    return broker.declare_queue("ticks", slots=SLOTS)


def go_round(queue: Queue, laps: int) -> None:
    both = [b"old", b"old"]
    for _ in range(laps):
        queue.publish_many(both)
        queue.receive_many(SLOTS)


def test_lossy_subscribers_go_on_with_what_is_there(broker: Broker, queue: Queue) -> None:
    subscriptions = {}
    before = FAR[-1]
    for laps in reversed(FAR):
        go_round(queue, before - laps)
        subscriptions[laps] = broker.subscribe("ticks", lossy=True)
        before = laps
    go_round(queue, before)
    waits = {laps: lib.sb_cursor_wait(each._cursor, 0) for laps, each in subscriptions.items()}
    assert waits == dict.fromkeys(FAR, OK)  # none would sleep: all have something to look at
    queue.publish(b"new")
    for laps, each in subscriptions.items():
        assert each.get(timeout=0).body == b"new"
        assert each.missed == laps * SLOTS


def test_old_positions_are_gone_and_not_to_come(queue: Queue) -> None:
    go_round(queue, FAR[-1])
    message, room = ffi.new("sb_message *"), ffi.new("char[4096]")
    tail = FAR[-1] * SLOTS
    for laps in FAR:
        at = tail - laps * SLOTS
        assert lib.sb_browse(queue._queue, at, message, room, len(room)) == GONE


def test_one_that_waits_in_asyncio(vhost: str) -> None:
    async def session() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.declare_queue("ticks", slots=SLOTS)
            async with broker.subscribe("ticks", lossy=True) as subscription:
                go_round(queue._sync, LAPS // 2 + 1)
                await queue.publish(b"new")
                assert (await subscription.get(timeout=10)).body == b"new"

    asyncio.run(session())


def test_a_consumer_of_a_queue_from_which_nothing_is_taken(broker: Broker) -> None:
    rates = broker.declare_queue("rates", slots=4, last_value=True, non_destructive=True)
    looks = rates.consume(timeout=0)
    rates.publish(b"old", key="eur")
    assert next(looks).body == b"old"
    position = 0
    while position < 4 * (LAPS // 2 + 2):
        position = rates.publish(b"new", key="eur")
    assert next(looks).body == b"new"


def test_one_that_lost_its_gate_is_told_so(ring_name: str) -> None:
    """Taken for dead while it was stopped: what is in the slots now was never kept for it."""
    with Ring.create(ring_name, slots=SLOTS) as ring:
        producer, consumer, subscriber = ring.port(1), ring.port(2), ring.port(3)
        cursor = subscriber.subscribe()
        assert producer.repair([1, 2]) > 0
        for _ in range(LAPS // 2 + 1):
            producer.publish_many([b"old", b"old"])
            consumer.receive_many(SLOTS)
        with pytest.raises(DeliveryRevoked):
            cursor.next(spins=0)
