"""Calls of asyncio that are cancelled, also when their answers are there already."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from shmbroker import TransactionEnded, aio
from shmbroker.netbridge.wire.words import Verb
from tests.support.serving import Site

LOGIN = {"user": "site", "password": "correct horse battery"}


async def begun(broker: Any) -> Any:
    """Its only call, which waits at the broker."""
    while not broker._session._pending:
        await asyncio.sleep(0.001)
    (pending,) = broker._session._pending.values()
    return pending


@pytest.mark.parametrize("count", [1, 3])
def test_a_take_that_is_cancelled_behind_its_answer_gives_the_messages_back(
    served: Site, count: int
) -> None:
    async def takes() -> None:
        async with aio.connect(f"tcp://127.0.0.1:{served.port}", **LOGIN) as broker:
            queue = await broker.declare_queue("q")
            there = served.broker.queue("q")
            taking = asyncio.ensure_future(queue.get_many(count, timeout=None))
            pending = await begun(broker)
            there.publish_many([b"%d" % number for number in range(count)])
            while pending.outcome is None:  # the loop does not turn, so nobody is woken
                time.sleep(0.001)
            taking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await taking
            got = [await queue.receive(timeout=60) for _ in range(count)]
            assert got == [b"%d" % number for number in range(count)]

    asyncio.run(takes())


def test_takes_that_are_cancelled_take_nothing(served: Site) -> None:
    """Each would have taken the next message unseen, and what goes back was delivered once more."""

    async def takes() -> None:
        async with aio.connect(f"tcp://127.0.0.1:{served.port}", **LOGIN) as broker:
            queue = await broker.declare_queue("q", max_deliveries=3)
            for _ in range(5):
                taking = asyncio.ensure_future(queue.get(timeout=None))
                await begun(broker)
                taking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await taking
            await queue.publish(b"x")
            message = await queue.get(timeout=60)
            assert (message.body, message.deliveries) == (b"x", 0)

    asyncio.run(takes())


@pytest.mark.parametrize("count", [1, 3])
def test_what_is_received_is_handed_out_or_stays_however_it_is_cancelled(
    served: Site, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    async def receives() -> None:
        async with aio.connect(f"tcp://127.0.0.1:{served.port}", **LOGIN) as broker:
            queue = await broker.declare_queue("q")
            await queue.publish_many([b"x"] * count)
            receiving = asyncio.ensure_future(queue.receive_many(count, timeout=60))
            begins = broker._session.begin

            def begin(what: str, verb: Verb, *told: Any, **named: Any) -> Any:
                if verb is Verb.ACK:  # cancelled as soon as it waits, or has ended
                    asyncio.get_running_loop().call_soon(receiving.cancel)
                return begins(what, verb, *told, **named)

            monkeypatch.setattr(broker._session, "begin", begin)
            await asyncio.wait([receiving])
            handed_out = [] if receiving.cancelled() else receiving.result()
            assert len(handed_out) + (await queue.statistics()).depth == count

    asyncio.run(receives())


def test_a_commit_that_is_cancelled_is_not_ok_when_it_is_asked_for_again(served: Site) -> None:
    async def commits() -> None:
        async with aio.connect(f"tcp://127.0.0.1:{served.port}", **LOGIN) as broker:
            queue = await broker.declare_queue("q", slots=8)
            await queue.publish_many([b"%d" % number for number in range(8)])
            transaction = broker.transaction()
            transaction.publish(queue, b"more")
            committing = asyncio.ensure_future(transaction.commit(timeout=None))
            await begun(broker)  # there is no room
            committing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await committing
            with pytest.raises(TransactionEnded):
                await transaction.commit()

    asyncio.run(commits())


def test_what_a_cancelled_commit_would_have_acknowledged_comes_again(served: Site) -> None:
    async def commits() -> None:
        async with aio.connect(f"tcp://127.0.0.1:{served.port}", **LOGIN) as broker:
            broker._session._client.calls.together = 64 << 10
            full = await broker.declare_queue("full", slots=8)
            queue = await broker.declare_queue("q")
            await full.publish_many([b"%d" % number for number in range(8)])
            await queue.publish(b"taken")
            message = await queue.get(timeout=60)
            waiting = asyncio.ensure_future(full.publish(bytes(60 << 10), timeout=None))
            transaction = broker.transaction()
            transaction.ack(message)
            transaction.publish(queue, bytes(10 << 10))
            committing = asyncio.ensure_future(transaction.commit(timeout=None))
            while len(broker._session._pending) < 2:  # there is no room for it
                await asyncio.sleep(0.001)
            committing.cancel()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await committing
            assert await queue.receive(timeout=60) == b"taken"

    asyncio.run(commits())


def is_answered(pending: Any, goes_on: threading.Event) -> None:
    goes_on.set()
    while pending.outcome is None:  # the loop does not turn, so nobody is woken
        time.sleep(0.001)


@pytest.mark.parametrize("waits", [lambda pending, goes_on: None, is_answered])
def test_what_was_to_be_opened_and_is_cancelled_is_left(
    served: Site, monkeypatch: pytest.MonkeyPatch, waits: Any
) -> None:
    async def opens() -> None:
        async with aio.connect(f"tcp://127.0.0.1:{served.port}", **LOGIN) as broker:
            await broker.declare_exchange("x", "topic")
            begins, begun = broker._session.begin, []

            def begin(*told: Any, **named: Any) -> Any:
                begun.append(begins(*told, **named))
                return begun[-1]

            monkeypatch.setattr(broker._session, "begin", begin)

            async def cancelled(opening: Any) -> None:
                goes_on = threading.Event()
                broker._session._thread.call(goes_on.wait)  # nothing is answered before it waits
                task = asyncio.ensure_future(opening)
                await asyncio.sleep(0)
                waits(begun[-1], goes_on)
                task.cancel()
                goes_on.set()
                with pytest.raises(asyncio.CancelledError):
                    await task

            for _ in range(2):
                await cancelled(broker.subscription("s", exchange="x", key="#"))
            subscription = await broker.subscription("s", exchange="x", key="#")
            await (await broker.exchange("x")).publish(b"seen", key="a")
            assert await subscription.receive(timeout=60) == b"seen"
            before = {each.name for each in await broker.queues()}
            await cancelled(broker.temporary_queue())
            assert {each.name for each in await broker.queues()} == before

    asyncio.run(opens())


def test_a_subscription_whose_first_get_was_cancelled_goes_on(served: Site) -> None:
    async def subscribes() -> None:
        async with aio.connect(f"tcp://127.0.0.1:{served.port}", **LOGIN) as broker:
            queue = await broker.declare_queue("q")
            subscription = broker.subscribe("q", start="earliest")
            getting = asyncio.ensure_future(subscription.get(timeout=None))
            await asyncio.sleep(0)
            getting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await getting
            await queue.publish(b"x")
            assert (await subscription.get(timeout=60)).body == b"x"

    asyncio.run(subscribes())
