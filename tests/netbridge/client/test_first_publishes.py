"""First messages to a queue that many send at once."""

from __future__ import annotations

import asyncio

from shmbroker import aio
from tests.support.serving import Site

LOGIN = {"user": "site", "password": "correct horse battery"}


def test_first_publishes_at_once_leave_one_producer(served: Site) -> None:
    async def publishes() -> None:
        async with aio.connect(f"tcp://127.0.0.1:{served.port}", **LOGIN) as broker:
            queue = await broker.declare_queue("q")
            await asyncio.gather(*(queue.publish(b"x") for _ in range(50)))
            await queue.publish(b"last")
            client = broker._session._client  # type: ignore[attr-defined]
            assert (len(client.producers), len(client.standing)) == (1, 1)
            assert len(served.broker.queue("q")) == 51

    asyncio.run(publishes())
