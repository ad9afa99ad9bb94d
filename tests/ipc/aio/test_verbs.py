"""asyncio: what each verb does, and how it ends when nothing comes."""

from __future__ import annotations

import asyncio
import gc

import pytest

import shmbroker
from shmbroker import aio
from tests.ipc.aio.loop import run


def test_the_verbs_of_a_queue(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url, name="me") as broker:
            queue = await broker.declare_queue("q", slots=16)
            assert await broker.queue("q") is queue
            assert (queue.name, queue.slots, queue.is_paused) == ("q", 16, False)
            assert await queue.publish(b"a", key="k", properties={"x": 1}) == 0
            assert await queue.publish_many(iter([b"b", b"c", b"d"])) == 3
            with pytest.raises(shmbroker.InvalidArgument):
                await queue.publish_many(b"bcd")
            async with await queue.get() as message:
                assert (message.body, message.key, message.properties) == (b"a", "k", {"x": 1})
            assert [each.body async for each in queue.browse()] == [b"b", b"c", b"d"]
            assert await queue.receive() == b"b"
            assert await queue.receive_many() == [b"c", b"d"]
            async with queue.loan(3) as loan:
                loan.view[:] = b"xyz"
            assert loan.position == 4
            (message,) = await queue.get_many(10)
            message.give_back()
            assert queue.get_nowait().deliveries == 1
            told = await queue.statistics()
            assert (told.published, told.acked) == (5, 4)
            await queue.pause()
            assert queue.is_paused
            await queue.resume()
            assert await queue.purge() == 1
            assert [each.name for each in await broker.queues()] == ["q"]
            assert [each.name for each in await broker.participants()] == ["me"]
            await broker.delete_queue("q")
            with pytest.raises(shmbroker.NotFound):
                await broker.queue("q")
        assert broker.is_closed

    run(main())


def test_get_is_awaited_or_entered(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q")
            await queue.publish_many([b"a", b"b", b"c", b"d"])
            async with queue.get() as message:
                assert message.body == b"a"
            with pytest.raises(ZeroDivisionError):
                async with queue.get(timeout=1):
                    raise ZeroDivisionError
            async with await queue.get() as message:
                assert (message.body, message.deliveries) == (b"b", 1)
            assert (await asyncio.create_task(queue.get())).body == b"c"
            first, second = await asyncio.gather(queue.get(), asyncio.wait_for(queue.get(), 1))
            assert {first.body, second.body} == {b"c", b"d"}  # the task's was dropped, and is back
            with pytest.raises(shmbroker.Empty):
                async with queue.get(timeout=0.01):
                    pass
            waiting = asyncio.create_task(queue.get())
            await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    run(main())


def test_an_exchange_waits_for_the_queue_that_is_full_and_no_queue_has_it_twice(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            first, second = [await broker.declare_queue(name, slots=4) for name in ("a", "b")]
            exchange = await broker.declare_exchange("e", "topic")
            assert (exchange.name, exchange.kind) == ("e", "topic")
            for name in ("a", "b"):
                await broker.bind("e", name, "x.#")
            await second.publish_many([b"old"] * 4)
            publishing = asyncio.create_task(exchange.publish(b"new", key="x.y"))
            with pytest.raises(shmbroker.QueueFull):
                await exchange.publish(b"no", key="x.y", timeout=0)
            await asyncio.sleep(0.02)
            assert not publishing.done()
            assert await second.receive() == b"old"
            assert await publishing == 2
            # "no" came to the queue before the full one
            assert sorted(await first.receive_many()) == [b"new", b"no"]
            assert (await second.receive_many())[-1] == b"new"
            with pytest.raises(shmbroker.Unroutable):
                await exchange.publish(b"", key="y", mandatory=True)

    run(main())


def test_a_time_out_is_empty_or_full_and_names_the_queue(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q", slots=4)
            for timeout in (0, 0.01):
                with pytest.raises(shmbroker.Empty, match="'q'"):
                    await queue.get(timeout=timeout)
            with pytest.raises(shmbroker.QueueFull, match="4 of 6 messages") as told:
                await queue.publish_many([b"x"] * 6, timeout=0.01)
            assert told.value.published == 4
            for timeout in (0, 0.01):
                with pytest.raises(shmbroker.QueueFull, match="'q'"):
                    await queue.publish(b"x", timeout=timeout)
            with pytest.raises(shmbroker.QueueFull):
                queue.publish_nowait(b"x")
            with pytest.raises(shmbroker.InvalidArgument, match="timeout"):
                await queue.get(timeout=-1)
            with pytest.raises(TimeoutError):  # somebody else's time-out stays what it is
                async with asyncio.timeout(0.01):
                    await queue.publish(b"x")

    run(main())


def test_consume_acknowledges_and_gives_back_what_was_in_hand(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q")
            await queue.publish_many([b"%d" % number for number in range(10)])
            seen = []
            async for message in queue.consume(timeout=0.01, prefetch=4):
                seen.append(message.body)
                if len(seen) == 6:
                    break
            del message
            gc.collect()
            assert seen == [b"%d" % number for number in range(6)]
            told = await queue.statistics()
            assert (told.acked, told.taken, told.redelivered) == (5, 0, 3)
            rest = [each.body async for each in queue.consume(timeout=0.01)]
            assert rest == [b"5", b"6", b"7", b"8", b"9"]

    run(main())


def test_who_observes_looks_only(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker, aio.connect(url, observe=True) as observer:
            await (await broker.declare_queue("q")).publish(b"x")
            queue = await observer.queue("q")
            assert [each.body async for each in queue.browse()] == [b"x"]
            assert (await queue.statistics()).published == 1
            assert len(await observer.participants()) == 1

    run(main())


def test_a_move_does_not_wait_for_room(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            here, there = [await broker.declare_queue(name, slots=4) for name in ("a", "b")]
            await here.publish_many([b"x"] * 4)
            assert await here.copy_to(there, 1) == 1
            assert await here.move_to(there, timeout=0) == 3
            with pytest.raises(shmbroker.InvalidArgument, match="timeout is 0"):
                await here.move_to(there, timeout=1)

    run(main())
