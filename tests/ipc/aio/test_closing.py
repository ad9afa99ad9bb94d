"""asyncio: what closing and deleting do to those who wait, and to our threads."""

from __future__ import annotations

import asyncio
import gc
import os
import signal

import pytest

import shmbroker
from shmbroker import aio
from tests.ipc.aio.loop import run, sleepers


def test_closing_wakes_all_who_wait_and_leaves_no_thread(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            empty, full = await broker.declare_queue("e"), await broker.declare_queue("f", slots=2)
            await full.publish_many([b"x", b"x"])
            subscription = broker.subscribe("e")
            waiting = [
                asyncio.create_task(each)
                for each in (empty.get(), empty.get(), full.publish(b"y"), subscription.get())
            ]
            await asyncio.sleep(0.01)
        for each in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(each, shmbroker.ConnectionClosed), each
        with pytest.raises(shmbroker.ConnectionClosed):
            await empty.get()
        await broker.close()  # twice is once
        assert asyncio.all_tasks() - {asyncio.current_task()} <= set()

    run(main())
    assert not sleepers()


def test_a_subscription_that_is_closed_says_so(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            await broker.declare_queue("q")
            async with broker.subscribe("q") as subscription:
                waiting = asyncio.create_task(subscription.get())
                await asyncio.sleep(0.01)
            with pytest.raises(shmbroker.ConnectionClosed, match="subscription"):
                await waiting

    run(main())


def test_who_is_cancelled_as_its_subscription_is_closed_is_cancelled(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            await broker.declare_queue("q")
            async with broker.subscribe("q") as subscription:
                waiting = [asyncio.create_task(subscription.get()) for _ in range(2)]
                await asyncio.sleep(0)  # both wait now
                waiting[0].cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting[0]
            with pytest.raises(shmbroker.ConnectionClosed, match="subscription"):
                await waiting[1]

    run(main())


def test_deleting_a_queue_wakes_who_waits_for_it(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q")
            waiting = asyncio.create_task(queue.get())
            await asyncio.sleep(0.01)
            await broker.delete_queue("q")
            with pytest.raises(shmbroker.NotFound):
                await waiting

    run(main())


def test_who_forgets_to_close_leaves_no_thread(url: str) -> None:
    async def main() -> None:
        broker = await aio.connect(url)
        queue = await broker.declare_queue("q")
        with pytest.raises(shmbroker.Empty):
            await queue.get(timeout=0.01)
        assert len(sleepers()) == 1

    run(main())
    gc.collect()
    for each in sleepers():
        each.join(10)
    assert not sleepers()


def test_a_child_that_is_forked_closes_its_copy(url: str) -> None:
    """It has no sleeper, and does not wait for the end of one."""

    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q")
            waiting = asyncio.create_task(queue.get())
            await asyncio.sleep(0)
            child = os.fork()
            if child == 0:
                signal.alarm(10)
                try:
                    await broker.close()
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitpid(child, 0)[1] == 0
            await queue.publish(b"to the parent")
            assert (await waiting).body == b"to the parent"

    run(main())
