"""A queue is deleted while a program reads it: in shared memory and over a link."""

from __future__ import annotations

from typing import Any

import pytest

import shmbroker
from shmbroker import NotFound
from tests.support.client_api import Api, each, it


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


def test_who_subscribes_is_told(api: Api) -> None:
    async def subscribe(api: Api, broker: Any) -> None:
        await it((await it(broker.declare_queue("q"))).publish(b"x"))
        reading = broker.subscribe("q", start="earliest")
        await it(reading.get(timeout=5))
        deleted(api, "q")
        with pytest.raises(NotFound, match="'q'"):
            await it(reading.get(timeout=20))

    api.run(subscribe)
