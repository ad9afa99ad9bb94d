"""Close and drain, while loops wait and messages are in hand: in each way to connect."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import shmbroker
from shmbroker import ConnectionClosed, Unconfirmed
from tests.support.client_api import PATIENCE, Api, Begun, beside, each, it, result


async def until(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


def draining(broker: Any) -> list[bool]:
    found: list[bool] = getattr(broker, "_sync", broker)._draining
    return found


async def _awaited(verb: Callable[[], Any]) -> Any:
    return await it(verb())


async def _all(queue: Any) -> list[bytes]:
    return [message.body async for message in each(queue.consume())]


def in_each_way(program: Callable[[Api, Any, Any], Awaitable[None]]) -> Callable[[Api], None]:
    """It is given somebody else's handle of the queue that it has declared, too."""

    def test(api: Api) -> None:
        async def whole(api: Api, broker: Any) -> None:
            with shmbroker.connect(f"shm://{api.vhost}", create=True) as other:
                await it(broker.declare_queue("q"))
                await program(api, broker, other.queue("q"))

        api.run(whole)

    test.__name__ = program.__name__
    return test


async def waiting_loop(api: Api, broker: Any, there: Any) -> Begun:
    """It has acknowledged what came first."""
    queue = await it(broker.queue("q"))
    await it(queue.publish(b"first"))
    loop = beside(api, _all(queue))
    await until(lambda: there.statistics().depth == 0)
    return loop


@in_each_way
async def test_a_loop_that_waits_is_told_that_its_connection_was_closed(
    api: Api, broker: Any, there: Any
) -> None:
    loop = await waiting_loop(api, broker, there)
    await it(broker.close())
    with pytest.raises(ConnectionClosed):
        await result(loop)


@in_each_way
async def test_a_loop_that_waits_ends_when_its_connection_is_drained(
    api: Api, broker: Any, there: Any
) -> None:
    loop = await waiting_loop(api, broker, there)
    assert await it(broker.drain(timeout=PATIENCE)) == 0
    assert await result(loop) == [b"first"]
    assert broker.is_closed


@in_each_way
async def test_what_waits_in_a_subscription_is_told_that_its_connection_was_closed(
    api: Api, broker: Any, there: Any
) -> None:
    async def seen(shown: list[bytes]) -> None:
        async for message in each(subscription):
            shown.append(message.body)

    subscription = broker.subscribe("q", start="earliest", timeout=None)
    there.publish(b"x")
    shown: list[bytes] = []
    begun = beside(api, seen(shown))
    await until(lambda: bool(shown))
    await it(broker.close())
    with pytest.raises(ConnectionClosed):
        await result(begun)


@in_each_way
async def test_what_is_in_hand_may_be_dealt_with_while_a_connection_is_drained(
    api: Api, broker: Any, there: Any
) -> None:
    there.publish_many([b"1", b"2"])
    queue = await it(broker.queue("q"))
    messages = await it(queue.get_many(2, timeout=PATIENCE))
    ending = beside(api, _awaited(lambda: broker.drain(timeout=PATIENCE)))
    await until(lambda: bool(draining(broker)))
    for message in messages:
        await it(message.ack())
    assert await result(ending) == 0
    assert there.statistics().depth == 0


@in_each_way
async def test_a_durable_queue_that_was_deleted_cuts_no_draining_short(
    api: Api, broker: Any, there: Any
) -> None:
    gone = await it(broker.declare_queue("gone", durable=True))
    there.publish(b"1")
    message = await it((await it(broker.queue("q"))).get(timeout=PATIENCE))
    there._broker.delete_queue("gone", force=True)
    ending = beside(api, _awaited(lambda: broker.drain(timeout=PATIENCE)))
    await until(lambda: bool(draining(broker)))
    await it(message.ack())
    assert await result(ending) == 0
    assert there.statistics().depth == 0
    del gone


@in_each_way
async def test_a_loop_ends_after_the_message_that_it_has(
    api: Api, broker: Any, there: Any
) -> None:
    async def works() -> None:
        async for message in each(queue.consume(prefetch=2)):
            found.append(message.body)
            await until(lambda: bool(draining(broker)))

    found: list[bytes] = []

    queue = await it(broker.queue("q"))
    loop = beside(api, works())
    there.publish_many([b"1", b"2", b"3"])
    await until(lambda: bool(found))
    assert await it(broker.drain(timeout=PATIENCE)) == 0
    await result(loop)
    assert found == [b"1"]
    assert sorted(there.receive_many(8, timeout=0)) == [b"2", b"3"]


@in_each_way
async def test_what_is_left_in_hand_is_counted_and_goes_to_others(
    api: Api, broker: Any, there: Any
) -> None:
    there.publish_many([b"1", b"2"])
    queue = await it(broker.queue("q"))
    messages = await it(queue.get_many(2, timeout=PATIENCE))
    assert await it(broker.drain(timeout=0.05)) == 2
    # they come back behind the answer to its end, one after the other
    assert [there.receive(timeout=PATIENCE) for _ in range(2)] == [b"1", b"2"]
    del messages


@in_each_way
async def test_what_a_subscription_was_shown_is_in_nobodys_hand(
    api: Api, broker: Any, there: Any
) -> None:
    subscription = broker.subscribe("q", start="earliest", timeout=PATIENCE)
    there.publish_many([b"1", b"2"])
    assert (await it(subscription.get(timeout=PATIENCE))).body == b"1"
    assert await it(broker.drain(timeout=PATIENCE)) == 0


@in_each_way
async def test_what_is_not_confirmed_in_time_is_said(api: Api, broker: Any, there: Any) -> None:
    queue = await it(broker.declare_queue("safe", durable=True))
    await it(queue.publish(b"x", confirm="shm"))
    with pytest.raises(Unconfirmed):
        await it(broker.drain(timeout=0.1))
    assert broker.is_closed
