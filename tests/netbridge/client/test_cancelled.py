"""Calls of asyncio that are cancelled when their answers are there already."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from shmbroker import aio
from tests.support.serving import Site

LOGIN = {"user": "site", "password": "correct horse battery"}


async def answered(broker: Any) -> None:
    """Its call is; the loop does not turn meanwhile, so whoever waits for it goes on waiting."""
    while not broker._session._pending:
        await asyncio.sleep(0)
    (pending,) = broker._session._pending.values()
    while pending.outcome is None:
        time.sleep(0.001)


@pytest.mark.parametrize("count", [1, 3])
def test_a_take_that_is_cancelled_behind_its_answer_gives_the_messages_back(
    served: Site, count: int
) -> None:
    async def takes() -> None:
        async with aio.connect(f"tcp://127.0.0.1:{served.port}", **LOGIN) as broker:
            queue = await broker.declare_queue("q")
            there = served.broker.queue("q")
            taking = asyncio.ensure_future(queue.get_many(count, timeout=None))
            await asyncio.sleep(0)
            there.publish_many([b"%d" % number for number in range(count)])
            await answered(broker)
            taking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await taking
            got = [await queue.receive(timeout=60) for _ in range(count)]
            assert got == [b"%d" % number for number in range(count)]

    asyncio.run(takes())
