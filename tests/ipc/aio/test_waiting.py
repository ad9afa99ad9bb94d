"""asyncio: waiting without a busy loop, and who is woken by what."""

from __future__ import annotations

import asyncio
import random
import time
from statistics import median

import pytest

from shmbroker import QueueFull, aio
from tests.ipc.aio.loop import child, line_of, run, sleepers

ECHO = """
import sys, shmbroker
with shmbroker.connect(sys.argv[1]) as broker:
    there, back = broker.queue("there"), broker.queue("back")
    print("ready", flush=True)
    for body in iter(there.receive, b""):
        back.publish(body)
"""


def test_who_waits_is_woken_at_once_and_not_by_a_slice(url: str) -> None:
    async def main() -> list[float]:
        async with aio.connect(url) as broker:
            there = await broker.declare_queue("there")
            back = await broker.declare_queue("back", slots=4)
            process = child(ECHO, url)
            try:
                assert await line_of(process) == "ready"
                waited = []
                for _ in range(100):
                    answer = asyncio.create_task(back.receive())
                    await asyncio.sleep(0.002)  # it sleeps, and so does the other one
                    started = time.perf_counter()
                    await there.publish(b"x")
                    await answer
                    waited.append(time.perf_counter() - started)
                await there.publish(b"")
            finally:
                process.kill()
                process.wait()
            return waited

    assert median(run(main())) < 0.02  # a slice lasts 0.1


def test_each_waiter_gets_one_and_each_subscriber_all(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker, aio.connect(url) as other:
            queue = await broker.declare_queue("q", slots=64)
            waiting = [asyncio.create_task(queue.receive()) for _ in range(20)]

            async def all_of() -> list[bytes]:
                async with broker.subscribe("q") as subscription:
                    return [(await subscription.get()).body for _ in range(20)]

            watching = [asyncio.create_task(all_of()) for _ in range(3)]
            await asyncio.sleep(0.01)
            assert len(sleepers()) == 1
            theirs = await other.queue("q")
            for number in range(20):
                await theirs.publish(b"%d" % number)
                if number % 3 == 0:
                    await asyncio.sleep(0.001)
            wanted = sorted(b"%d" % number for number in range(20))
            assert sorted(await asyncio.gather(*waiting)) == wanted
            for each in await asyncio.gather(*watching):
                assert sorted(each) == wanted

    run(main())


def test_a_publisher_is_woken_when_an_acknowledgement_makes_room(url: str) -> None:
    async def main() -> list[float]:
        async with aio.connect(url) as broker, aio.connect(url) as other:
            queue, theirs = await broker.declare_queue("q", slots=2), await other.queue("q")
            await queue.publish_many([b"x", b"x"])
            waited = []
            for _ in range(30):
                publishing = asyncio.create_task(queue.publish(b"y"))
                await asyncio.sleep(0.002)
                assert not publishing.done()
                started = time.perf_counter()
                theirs.get_nowait().ack()
                await publishing
                waited.append(time.perf_counter() - started)
            async with queue.loan(1):
                (await theirs.get()).ack()
            return waited

    assert median(run(main())) < 0.02


def test_a_publisher_that_fails_at_another_queue_passes_the_ring_on(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker, aio.connect(url) as other:
            first = await broker.declare_queue("a", slots=2)
            second = await broker.declare_queue("b", slots=2, when_full="fail")
            exchange = await broker.declare_exchange("x", "fanout")
            for queue in first, second:
                await broker.bind("x", queue.name)
                await queue.publish_many([b"x", b"x"])
            failing = asyncio.create_task(exchange.publish(b"y"))
            waiting = asyncio.create_task(first.publish(b"z"))
            await asyncio.sleep(0)
            theirs = await other.queue("a")
            theirs.get_nowait().ack()
            with pytest.raises(QueueFull):
                await failing
            assert not waiting.done()  # it came second
            theirs.get_nowait().ack()
            async with asyncio.timeout(10):
                await waiting

    run(main())


def test_a_full_queue_waits_for_a_subscriber_which_waits(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q", slots=4)
            seen = []

            async def watch() -> None:
                async for message in broker.subscribe("q"):
                    seen.append(message.body)
                    if len(seen) == 50:
                        break

            watching = asyncio.create_task(watch())
            await asyncio.sleep(0)
            for number in range(50):
                await queue.publish(b"%d" % number)
                await queue.receive()
            await watching
            assert seen == [b"%d" % number for number in range(50)]

    run(main())


def test_more_queues_than_the_kernel_waits_for_at_once(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker, aio.connect(url) as other:
            queues = [await broker.declare_queue(f"q{each}", slots=2) for each in range(200)]
            waiting = [asyncio.create_task(queue.receive()) for queue in queues]
            await asyncio.sleep(0.01)
            for queue in random.sample(queues, len(queues)):
                theirs = await other.queue(queue.name)
                await theirs.publish(queue.name.encode())
            assert await asyncio.gather(*waiting) == [each.name.encode() for each in queues]

    run(main())


def test_who_is_always_busy_lets_others_run(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q")

            async def busy() -> None:
                while True:
                    await queue.publish(b"x")
                    await queue.receive()

            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await busy()

    run(main())


HOLDER = """
import sys, time, shmbroker
broker = shmbroker.connect(sys.argv[1])
message = broker.queue("q").get()
print("has it", flush=True)
time.sleep(60)
"""


def test_what_a_dead_consumer_had_in_hand_comes_to_a_waiter(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q")
            await queue.publish(b"x")
            process = child(HOLDER, url)
            try:
                assert await line_of(process) == "has it"
                waiting = asyncio.create_task(queue.get())
                await asyncio.sleep(0)
            finally:
                process.kill()
                process.wait()
            async with await waiting as message:
                assert (message.body, message.deliveries) == (b"x", 1)

    run(main())
