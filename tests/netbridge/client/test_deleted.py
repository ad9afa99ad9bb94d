"""A queue is deleted while a program reads it: in shared memory and over a link."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import NotFound
from tests.support.client_api import Api, each, it
from tests.support.host import journaling
from tests.support.serving import Site


def deleted(api: Api, queue: str) -> None:
    with shmbroker.connect(f"shm://{api.vhost}", name="other") as other:
        other.delete_queue(queue, force=True)


def test_who_consumes_is_told(api: Api) -> None:
    async def consume(api: Api, broker: Any) -> None:
        queue = await it(broker.declare_queue("q"))
        await it(queue.publish(b"x"))
        with pytest.raises(NotFound, match="'q'"):
            async for message in each(queue.consume(timeout=20, prefetch=10)):
                await it(message.ack())
                deleted(api, "q")

    api.run(consume)


def test_looking_makes_no_queue(api: Api) -> None:
    async def look(api: Api, broker: Any) -> None:
        await it(broker.settings("session-1", auto_create=True))
        queue = await it(broker.queue("session-1"))
        deleted(api, "session-1")
        with pytest.raises(NotFound, match="session-1"):
            await it(queue.statistics())
        with pytest.raises(NotFound, match="session-1"):
            async for _ in each(queue.browse()):
                pass
        with pytest.raises(NotFound, match="there is no queue 'session-1'"):
            await it(broker._queue_there("session-1"))
        assert "session-1" not in {row.name for row in await it(broker.queues())}
        made = await it(broker.queue("session-1"))
        assert await it(broker._queue_there("session-1")) is made

    api.run(look)


def test_who_subscribes_is_told(api: Api) -> None:
    async def subscribe(api: Api, broker: Any) -> None:
        await it((await it(broker.declare_queue("q"))).publish(b"x"))
        reading = broker.subscribe("q", start="earliest")
        await it(reading.get(timeout=60))
        deleted(api, "q")
        with pytest.raises(NotFound, match="'q'"):
            await it(reading.get(timeout=20))

    api.run(subscribe)


@pytest.mark.parametrize("is_many", [False, True])
def test_who_waits_for_room_is_told(api: Api, is_many: bool) -> None:
    """The same connection deletes it."""

    async def publish(api: Api, broker: Any) -> None:
        queue = await it(broker.declare_queue("q", slots=8))
        await it(queue.publish_many([b"x"] * 8))
        verb, said = (queue.publish_many, [b"more"]) if is_many else (queue.publish, b"more")
        is_sync = api.style == "sync"
        begun = asyncio.to_thread(verb, said, timeout=None) if is_sync else verb(said, timeout=None)
        waiting = asyncio.ensure_future(begun)
        await asyncio.sleep(0)
        while api.is_over_link and not broker._session._client.calls.sent:
            await asyncio.sleep(0.001)
        await it(broker.delete_queue("q", force=True))
        with pytest.raises(NotFound):
            await asyncio.wait_for(waiting, 60)

    api.run(publish)


def test_the_broker_keeps_nothing_of_what_could_not_be_opened(
    vhost: str, tmp_path: Path
) -> None:
    """Each publish by a handle of a deleted queue tries to open a producer."""
    with shmbroker.connect(f"shm://{vhost}", name="test") as there:
        site = Site(there, tmp_path)
        uri = f"tcp://site:correct horse battery@127.0.0.1:{site.port}"
        with site.served() as audience, shmbroker.connect(uri) as broker:
            queue = broker.declare_queue("q")
            broker.delete_queue("q")
            for _ in range(3):
                with pytest.raises(NotFound):
                    queue.publish(b"x")
            broker.queues()  # behind them
            service = audience._service
            (session,) = service.sessions
            served = service.served_of(session)
            assert served is not None
            assert not served._unopened


def test_a_producer_goes_on_when_there_is_another_of_its_name(api: Api) -> None:
    async def publish(api: Api, broker: Any) -> None:
        queue = await it(broker.declare_queue("q"))
        exchange = await it(broker.declare_exchange("x", "fanout"))
        await it(broker.bind("x", "q"))
        await it(queue.publish(b"before"))
        await it(exchange.publish(b"before"))
        with shmbroker.connect(f"shm://{api.vhost}", name="other") as other:
            other.delete_queue("q", force=True)
            other.delete_exchange("x", force=True)
            other.declare_queue("q")
            other.declare_exchange("x", "fanout")
            other.bind("x", "q")
        queue = await it(broker.queue("q"))  # in shared memory the former one is that queue
        exchange = await it(broker.exchange("x"))
        for publishes in (queue, exchange):
            await it(publishes.publish(b"after"))
        deleted(api, "q")
        with shmbroker.connect(f"shm://{api.vhost}", name="other") as other:
            other.declare_queue("q", slots=2048)
        queue = await it(broker.queue("q"))
        many = [b"%d" % each for each in range(2000)]
        await it(queue.publish_many(many))
        assert [await it(queue.receive(timeout=60)) for _ in range(3)] == [b"0", b"1", b"2"]
        assert (await it(queue.statistics())).published == 2000
        deleted(api, "q")
        with pytest.raises(NotFound):
            await it(queue.publish(b"nowhere"))

    api.run(publish)


def test_a_durable_queue_that_others_have_published_to_is_in_nobodys_way(
    api: Api, tmp_path: Path
) -> None:
    """The broker has waited for confirms of it: that is done for others."""

    async def publish_and_leave(api: Api, broker: Any) -> None:
        await it(broker.declare_queue("q", durable=True))
        await it(broker.declare_exchange("x", "fanout"))
        await it(broker.bind("x", "q"))
        other = await api.connect()
        await it((await it(other.queue("q"))).publish(b"x"))
        await it((await it(other.exchange("x"))).publish(b"x", confirm="disk"))
        await it((await it(other.queue("q"))).publish(b"x", deliver_after=0.001))
        await it(other.close())
        await it(broker.delete_queue("q"))
        assert await it(broker.queues()) == []

    with journaling(api.vhost, tmp_path / "journal"):
        api.run(publish_and_leave)
