"""What is rejected while the dead-letter queue is full comes back, and says so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import shmbroker.aio
from shmbroker import QueueFull
from shmbroker.core import codes
from shmbroker.netbridge.serving.hands import TakenBatch
from tests.support.client_api import PATIENCE, Api, each, it
from tests.support.serving import Site

LOGIN: dict[str, Any] = {"user": "site", "password": "correct horse battery"}


async def without_room(broker: Any) -> tuple[Any, Any]:
    dead = await it(broker.declare_queue("dead", slots=2))
    queue = await it(broker.declare_queue("q", slots=256, dead_letter="dead"))
    await it(dead.publish_many([b"old"] * 2))
    return queue, dead


async def _singly(api: Api, broker: Any) -> None:
    queue, dead = await without_room(broker)
    await it(queue.publish(b"bad"))
    for turn in range(3):
        message = await it(queue.get(timeout=PATIENCE))
        assert message.deliveries == turn
        with pytest.raises(QueueFull, match="the dead-letter queue of 'q' is full") as error:
            await it(message.reject())
        assert error.value.code == codes.FULL
        assert not message.is_in_hand
    await it(dead.receive(timeout=PATIENCE))
    await it((await it(queue.get(timeout=PATIENCE))).reject())
    statistics = await it(queue.statistics())
    assert (statistics.depth, statistics.taken) == (0, 0)
    assert (await it(dead.statistics())).depth == 2


async def _in_a_loop(api: Api, broker: Any) -> None:
    """It goes on: what came back is in hand no more, so there is room for the next one."""
    queue, _ = await without_room(broker)
    await it(queue.publish(b"bad"))
    seen = 0
    async for message in each(queue.consume(timeout=PATIENCE, prefetch=1)):
        with pytest.raises(QueueFull):
            await it(message.reject())
        seen += 1
        if seen == 3:
            break


@pytest.mark.parametrize("program", [_singly, _in_a_loop])
def test_what_is_rejected_without_room_comes_back(api: Api, program: Any) -> None:
    api.run(program)


def test_one_is_tried_for_all_that_are_rejected_at_once(
    served: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try stops the network thread for a moment."""
    tried: list[int] = []
    reject = TakenBatch.reject

    def counted(self: TakenBatch, start: int, count: int) -> Any:
        tried.append(start)
        return reject(self, start, count)

    async def rejects() -> None:
        uri = f"tcp://127.0.0.1:{served.port}"
        async with shmbroker.aio.connect(uri, **LOGIN) as broker:
            queue, _ = await without_room(broker)
            await queue.publish_many([b"bad"] * 100)
            messages = await queue.get_many(100, timeout=PATIENCE)
            assert len(messages) == 100
            rejected = [one.reject() for one in messages]
            done = await asyncio.gather(*rejected, return_exceptions=True)
            assert {type(one) for one in done} == {QueueFull}
            statistics = await queue.statistics()
            assert (statistics.depth, statistics.taken) == (100, 0)

    monkeypatch.setattr(TakenBatch, "reject", counted)
    asyncio.run(rejects())
    assert len(tried) < 50


def test_one_is_tried_for_all_queues_whose_dead_go_to_the_same_one(
    served: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    reject = TakenBatch.reject

    def counted(self: TakenBatch, start: int, count: int) -> Any:
        tried.append(self.source)
        return reject(self, start, count)

    async def rejects() -> None:
        uri = f"tcp://127.0.0.1:{served.port}"
        async with shmbroker.aio.connect(uri, **LOGIN) as broker:
            await without_room(broker)
            messages = []
            for number in range(10):
                queue = await broker.declare_queue(f"q{number}", dead_letter="dead")
                await queue.publish(b"bad")
                messages.append(await queue.get(timeout=PATIENCE))
            other = await broker.declare_queue("other", dead_letter="room")
            await other.publish(b"bad")
            rejected = [one.reject() for one in messages]
            done = await asyncio.gather(*rejected, return_exceptions=True)
            assert {type(one) for one in done} == {QueueFull}
            await (await other.get(timeout=PATIENCE)).reject()
            assert (await (await broker.queue("room")).statistics()).depth == 1

    monkeypatch.setattr(TakenBatch, "reject", counted)
    asyncio.run(rejects())
    assert len([each for each in tried if each != "other"]) < 5
