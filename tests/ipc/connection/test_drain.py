"""drain: what was begun is finished, and then the connection is closed."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import shmbroker
from shmbroker import aio
from tests.ipc.aio.loop import run


@pytest.mark.parametrize("prefetch", [1, 4])
def test_loops_end_after_what_they_have_in_hand(
    broker: shmbroker.Broker, other: shmbroker.Broker, prefetch: int
) -> None:
    queue = broker.declare_queue("orders")
    queue.publish_many([b"%d" % each for each in range(8)])
    begun, seen = threading.Event(), []

    def work() -> None:
        for message in queue.consume(prefetch=prefetch):
            begun.set()
            while not (broker._draining or broker.is_closed):
                time.sleep(0.001)
            time.sleep(0.05)  # it is waited for
            seen.append(message.body)

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(10)
    assert broker.drain(timeout=10) == 0
    thread.join(10)
    assert not thread.is_alive()
    assert (seen, broker.is_closed) == ([b"0"], True)
    left = other.queue("orders").receive_many(8, timeout=0)
    assert sorted(left) == [b"%d" % each for each in range(1, 8)]


def test_a_loop_that_waits_just_ends(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("orders")
    thread = threading.Thread(target=lambda: list(queue.consume()))
    thread.start()
    time.sleep(0.1)
    assert broker.drain() == 0
    thread.join(10)
    assert not thread.is_alive()


def test_what_is_still_in_hand_goes_to_others(
    broker: shmbroker.Broker, other: shmbroker.Broker
) -> None:
    queue = broker.declare_queue("orders")
    queue.publish_many([b"a", b"b"])
    held = queue.get_many(2)
    assert broker.drain(timeout=0.05) == 2
    assert len(other.queue("orders").get_many(2, timeout=0)) == 2
    del held


def test_what_nobody_confirms_is_said_and_it_is_closed_all_the_same(
    broker: shmbroker.Broker,
) -> None:
    queue = broker.declare_queue("safe", durable=True)
    assert queue.publish(b"x", confirm="shm") == 0
    with pytest.raises(shmbroker.Unconfirmed):
        broker.drain(timeout=0.1)
    assert broker.is_closed


@pytest.mark.parametrize("waits", [True, False])
def test_a_loop_of_a_queue_that_keeps_its_messages_ends_too(
    broker: shmbroker.Broker, waits: bool
) -> None:
    rates = broker.declare_queue("rates", last_value=True, non_destructive=True)
    for key in "abc":
        rates.publish(b"", key=key)
    last = "c" if waits else "b"  # behind which it waits, or shows no more
    begun = threading.Event()

    def work() -> list[str | None]:
        seen = []
        for message in rates.consume():
            seen.append(message.key)
            if message.key == last:
                begun.set()
                while not (waits or broker.is_closed):
                    time.sleep(0.001)
        return seen

    with ThreadPoolExecutor() as pool:
        working = pool.submit(work)
        assert begun.wait(10)
        assert broker.drain() == 0
        assert working.result(10)[-1] == last


def test_asyncio_ends_a_loop_of_a_queue_that_keeps_its_messages(url: str) -> None:
    async def main() -> None:
        broker = await aio.connect(url)
        rates = await broker.declare_queue("rates", last_value=True, non_destructive=True)
        await rates.publish(b"", key="a")
        await rates.publish(b"", key="b")

        async def work(last: str) -> str | None:
            async for message in rates.consume():
                seen = message.key
                if message.key == last:
                    begun.set()
                    if last == "a":
                        await ended.wait()
            return seen

        ended = asyncio.Event()
        for last in "ab":  # shows no more, or waits
            begun = asyncio.Event()
            working[last] = asyncio.create_task(work(last))
            await begun.wait()
        assert await broker.drain() == 0
        ended.set()
        async with asyncio.timeout(10):
            assert await asyncio.gather(*working.values()) == ["a", "b"]

    working: dict[str, asyncio.Task[str | None]] = {}
    run(main())


def test_asyncio(url: str) -> None:
    async def main() -> None:
        broker = await aio.connect(url)
        queue = await broker.declare_queue("orders")
        await queue.publish_many([b"a", b"b", b"c"])
        seen = []

        async def work(prefetch: int) -> None:
            async for message in queue.consume(prefetch=prefetch):
                await asyncio.sleep(0.1)
                seen.append(message.body)

        working = [asyncio.create_task(work(each)) for each in (1, 2, 1, 1)]
        await asyncio.sleep(0.05)
        assert await broker.drain(timeout=10) == 0
        async with asyncio.timeout(10):
            await asyncio.gather(*working)
        assert len(seen) < 4
        assert broker.is_closed
        with shmbroker.connect(url) as other:
            assert len(other.queue("orders")) == 3 - len(seen)

    run(main())
