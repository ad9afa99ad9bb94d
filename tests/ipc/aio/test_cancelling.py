"""asyncio: cancelling at any moment loses nothing."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from shmbroker import aio
from shmbroker.ipc.aio.bell import A_MESSAGE, Bell
from tests.ipc.aio.loop import child, line_of, run

PRODUCER = """
import random, sys, time, shmbroker
with shmbroker.connect(sys.argv[1]) as broker:
    queue = broker.queue("q")
    for number in range(int(sys.argv[2])):
        queue.publish(b"%d" % number)
        if random.random() < 0.3:
            time.sleep(random.random() / 2000)
"""


@pytest.mark.parametrize("way", ["get", "get_many"])
def test_cancelling_at_any_moment_loses_no_message(url: str, way: str) -> None:
    count = 10_000

    async def main() -> tuple[int, list[int]]:
        cancelled, seen = 0, []
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q", slots=256)

            async def take() -> None:
                if way == "get":
                    async with await queue.get() as message:
                        seen.append(int(message.body))
                else:
                    for message in await queue.get_many(3):
                        with message:
                            seen.append(int(message.body))

            process = child(PRODUCER, url, str(count))
            try:
                while len(seen) < count:
                    tasks = [asyncio.create_task(take()) for _ in range(3)]
                    for _ in range(random.randrange(6)):
                        await asyncio.sleep(0)
                    if random.random() < 0.5:
                        await asyncio.sleep(random.random() / 2000)
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
                    for task in tasks:
                        cancelled += task.cancelled()
                        assert task.cancelled() or task.exception() is None
            finally:
                process.kill()
                process.wait()
            told = await queue.statistics()
            assert (told.depth, told.published) == (0, count)
        return cancelled, seen

    cancelled, seen = run(main())
    assert sorted(seen) == list(range(count))
    assert cancelled > 100  # of some thousands; fewer on a loaded machine


def test_one_who_is_woken_and_cancelled_passes_it_on(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q")
            first, second = [asyncio.create_task(queue.get()) for _ in range(2)]
            await asyncio.sleep(0)
            bell = Bell.of(broker._sleeper, queue._sync._queue, A_MESSAGE)
            queue.publish_nowait(b"x")
            if bell._ticket is not None:
                broker._sleeper.forget(bell._ticket)
            bell.ring()  # as the sleeper would, before anybody else runs
            first.cancel()
            async with await second as message:
                assert message.body == b"x"
            assert first.cancelled()

    run(main())


WAITER = """
import sys, shmbroker
with shmbroker.connect(sys.argv[1]) as broker:
    queue = broker.queue("q")
    print("ready", flush=True)
    for _ in sys.stdin:
        print(queue.receive().decode(), flush=True)
"""


def test_a_ring_for_one_who_was_cancelled_wakes_another_process(url: str) -> None:
    """In every second round none of ours waits: as many of those are late for other reasons."""
    rounds = 60

    async def main() -> list[float]:
        async with aio.connect(url) as broker, aio.connect(url) as other:
            queue, theirs = await broker.declare_queue("q"), await other.queue("q")
            process = child(WAITER, url)
            waited = []
            try:
                assert await line_of(process) == "ready"
                for number in range(2 * rounds):
                    waiting = None if number % 2 else asyncio.create_task(queue.get())
                    await asyncio.sleep(0.02)
                    assert process.stdin is not None
                    process.stdin.write("\n")
                    process.stdin.flush()
                    await asyncio.sleep(0.01)  # both sleep, we for longer: the kernel wakes us
                    started = time.perf_counter()
                    theirs.publish_nowait(b"%d" % number)
                    if waiting is not None:
                        waiting.cancel()  # we cannot have taken it: we have not run since
                    assert await line_of(process) == str(number)
                    waited.append(time.perf_counter() - started)
                    assert waiting is None or waiting.cancelled()
            finally:
                process.kill()
                process.wait()
            return waited

    # a ring that is lost costs the rest of a slice of 0.1 s; without passing on, every fourth is
    is_late = [waited > 0.05 for waited in run(main())]
    assert sum(is_late[::2]) - sum(is_late[1::2]) <= rounds // 8


def test_a_loan_that_is_cancelled_while_it_waits_is_dropped(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q", slots=2)
            await queue.publish_many([b"x", b"x"])
            for _ in range(200):  # more than there are lanes
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0):
                        async with queue.loan(10) as loan:
                            loan.view[:] = bytes(10)
                assert loan.position is None
            with pytest.raises(RuntimeError):
                async with queue.loan(10):
                    raise RuntimeError("on purpose")
            assert (await queue.statistics()).published == 2

    run(main())
