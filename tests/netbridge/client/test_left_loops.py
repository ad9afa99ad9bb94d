"""Loops that are left: what they have in hand, and what was sent ahead, goes back."""

from __future__ import annotations

from typing import Any

import pytest

import shmbroker
from tests.support.client_api import Api, it
from tests.support.serving import Site

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


def leaves_a_loop(served: Site, broker: Any) -> None:
    loop = broker.queue("q").consume(timeout=PATIENCE, prefetch=5)
    next(loop)
    while served.broker.queue("q").statistics().taken < 5:
        pass
    loop.close()


def closes(served: Site, broker: Any) -> None:
    held = broker.queue("q").get_many(5, timeout=PATIENCE)
    broker.close()
    assert held


def rolls_back(served: Site, broker: Any) -> None:
    with broker.transaction() as transaction:
        for message in transaction.queue("q").get_many(5, timeout=PATIENCE):
            message.ack()
        transaction.rollback()


@pytest.mark.parametrize("way", [leaves_a_loop, closes, rolls_back])
def test_what_goes_back_goes_in_its_order(served: Site, way: Any) -> None:
    """Somebody may wait for it, and has each as soon as it is back.  Seen in the dead letters."""
    bodies = [b"%d" % number for number in range(5)]
    dead = served.broker.declare_queue("dead")
    queue = served.broker.declare_queue("q", max_deliveries=1, dead_letter="dead")
    queue.publish_many(bodies)
    uri = f"tcp://site:correct horse battery@127.0.0.1:{served.port}"
    with shmbroker.connect(uri) as broker:
        way(served, broker)
        assert [dead.receive(timeout=PATIENCE) for _ in bodies] == bodies


def test_what_was_sent_ahead_goes_back_in_one_command(served: Site) -> None:
    served.broker.declare_queue("q", max_deliveries=None).publish_many([b"x"] * 5)
    uri = f"tcp://site:correct horse battery@127.0.0.1:{served.port}"
    with shmbroker.connect(uri) as broker:
        calls = broker._session._client.calls  # type: ignore[attr-defined]
        loop = broker.queue("q").consume(timeout=PATIENCE, prefetch=5)
        next(loop)
        while len(loop._inbox._arrived) < 4:  # type: ignore[attr-defined]
            pass
        before = calls.next
        loop.close()
        assert len(broker.queue("q")) == 5
        assert calls.next - before == 5, "it left, gave back twice, and we asked twice"
