"""Requests that nobody answers: in shared memory and over a link."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker import NoReply, QueueFull
from tests.support.client_api import Api, it


def test_a_request_that_nobody_answers_is_taken_back(api: Api) -> None:
    async def program(api: Api, broker: Any) -> None:
        queue = await it(broker.declare_queue("q"))
        with pytest.raises(NoReply) as error:
            await it(queue.request(b"?", timeout=0.01))
        assert await it(error.value.take_back())
        assert (await it(queue.statistics())).depth == 0
        assert not await it(error.value.take_back())
        with pytest.raises(NoReply) as error:
            await it(queue.request(b"?", timeout=0.01))
        message = await it(queue.get(timeout=60))
        assert not await it(error.value.take_back()), "somebody has it"
        await it(message.ack())

    api.run(program)


def test_a_request_that_finds_no_room_is_none(api: Api) -> None:
    async def program(api: Api, broker: Any) -> None:
        for durable in (False, True):
            queue = await it(broker.declare_queue(f"q{durable}", slots=2, durable=durable))
            await it(queue.publish_many([b"1", b"2"], **({"confirm": "shm"} if durable else {})))
            with pytest.raises(QueueFull):
                await it(queue.request(b"?", timeout=0.01))
            assert (await it(queue.statistics())).depth == 2

    api.run(program)
