"""Leaving a consume loop: what was not dealt with goes back to the queue at once."""

from __future__ import annotations

import sys
from contextlib import aclosing, closing

import pytest

import shmbroker
from shmbroker import aio
from tests.ipc.aio.loop import run


@pytest.fixture
def queue(broker: shmbroker.Broker) -> shmbroker.Queue:
    made = broker.declare_queue("q")
    made.publish_many([b"%d" % number for number in range(4)])
    return made


def taken(queue: shmbroker.Queue) -> int:
    return queue.statistics().taken


@pytest.mark.parametrize("prefetch", [1, 3])
@pytest.mark.parametrize("selector", [None, "$size > 0"])
def test_break_gives_back_although_the_variable_lives(
    queue: shmbroker.Queue, prefetch: int, selector: str | None
) -> None:
    for message in queue.consume(timeout=0, prefetch=prefetch, selector=selector):
        if message.body == b"1":
            break
    assert not message.is_in_hand
    assert taken(queue) == 0
    with pytest.raises(shmbroker.DeliveryRevoked):
        message.ack()
    assert [each.body for each in queue.consume(timeout=0)] == [b"1", b"2", b"3"]


def test_an_exception_gives_back_although_its_traceback_is_kept(queue: shmbroker.Queue) -> None:
    def work() -> None:
        for message in queue.consume(timeout=0, prefetch=3):
            assert message.body
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as kept:
        work()
    assert kept.value.__traceback__ is not None
    assert taken(queue) == 0
    assert sys.exc_info() == (None, None, None)


def test_closing_it_gives_back(queue: shmbroker.Queue) -> None:
    messages = queue.consume(timeout=0)
    with closing(messages):  # type: ignore[type-var]  # it is a generator
        first = next(messages)
        assert taken(queue) == 1
    assert (first.is_in_hand, taken(queue)) == (False, 0)


def test_what_was_dealt_with_stays_so(queue: shmbroker.Queue) -> None:
    for message in queue.consume(timeout=0):
        message.ack()
        break
    for message in queue.consume(timeout=0):
        message.give_back()
        break
    assert [each.body for each in queue.consume(timeout=0)] == [b"1", b"2", b"3"]


def test_leaving_after_the_connection_was_closed_is_no_error(url: str) -> None:
    with shmbroker.connect(url) as broker:
        queue = broker.declare_queue("q")
        queue.publish(b"x")
        messages = queue.consume(timeout=0)
        next(messages)
    messages.close()  # type: ignore[attr-defined]


def test_asyncio(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q")
            await queue.publish_many([b"%d" % number for number in range(4)])

            async def now_taken() -> int:
                return (await queue.statistics()).taken

            async for message in queue.consume(timeout=0, prefetch=3):
                assert message.is_in_hand
                break
            assert (message.is_in_hand, await now_taken()) == (False, 0)

            async def work() -> None:
                async for each in queue.consume(timeout=0):
                    assert each.body
                    raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError) as kept:
                await work()
            assert kept.value.__traceback__ is not None
            assert await now_taken() == 0
            async with aclosing(queue.consume(timeout=0)) as messages:
                first = await anext(messages)
                assert await now_taken() == 1
            assert (first.is_in_hand, await now_taken()) == (False, 0)
            assert [each.body async for each in queue.consume(timeout=0)] == [
                b"0", b"1", b"2", b"3"
            ]  # fmt: skip

    run(main())
