"""Loops that are left: what they have in hand, and what was sent ahead, goes back."""

from __future__ import annotations

from typing import Any

from tests.support.client_api import Api, it

PATIENCE = 60.0


async def next_of(loop: Any) -> Any:
    return next(loop) if hasattr(loop, "__next__") else await anext(loop)


async def leave(loop: Any) -> None:
    await it(loop.close() if hasattr(loop, "__next__") else loop.aclose())


def test_what_was_in_hand_was_delivered_once(api: Api) -> None:
    """Not again to the loop that is left, if it is given back while that has credit."""

    async def consume(api: Api, broker: Any) -> None:
        queue = await it(broker.declare_queue("q", max_deliveries=None))
        await it(queue.publish(b"x"))
        loop = queue.consume(timeout=PATIENCE, prefetch=10)
        assert (await next_of(loop)).body == b"x"
        await leave(loop)
        message = await it(queue.get(timeout=PATIENCE))
        assert (message.body, message.deliveries) == (b"x", 1)

    api.run(consume)
