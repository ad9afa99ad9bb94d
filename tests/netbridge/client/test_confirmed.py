"""What a confirm waits for: all that there is in durable queues, and nothing that there is not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import NoReply, Unconfirmed, Unroutable
from tests.ipc.queue.test_balanced import balanced
from tests.support.client_api import PATIENCE, Api, beside, it, result
from tests.support.host import journaling

SOON = 0.05


async def _publish(broker: Any, queue: Any) -> None:
    await it(queue.publish(b"1", timeout=SOON))


async def _publish_many(broker: Any, queue: Any) -> None:
    await it(queue.publish_many([b"1"], timeout=SOON))


async def _publish_through_an_exchange(broker: Any, queue: Any) -> None:
    exchange = await it(broker.declare_exchange("x", "fanout"))
    await it(broker.bind("x", "q"))
    await it(exchange.publish(b"1", confirm="disk", timeout=SOON))


async def _schedule(broker: Any, queue: Any) -> None:
    await it(queue.publish(b"1", deliver_after=3600, timeout=SOON))


async def _commit(broker: Any, queue: Any) -> None:
    transaction = broker.transaction()
    transaction.publish(queue, b"1")
    await it(transaction.commit(timeout=SOON))


async def _confirm(broker: Any, queue: Any) -> None:
    await it(queue.publish(b"1", confirm="shm"))
    await it(queue.confirm(timeout=SOON))


VERBS: dict[str, Callable[[Any, Any], Awaitable[None]]] = {
    "publish": _publish,
    "publish-many": _publish_many,
    "exchange": _publish_through_an_exchange,
    "schedule": _schedule,
    "commit": _commit,
    "confirm": _confirm,
}


def test_a_durable_queue_that_never_had_a_message_is_not_waited_for(
    api: Api, tmp_path: Path
) -> None:
    async def publish(api: Api, broker: Any) -> None:
        exchange = await it(broker.declare_exchange("x", "topic"))
        for name in ("eu", "us"):
            await it(broker.declare_queue(name, durable=True))
            await it(broker.bind("x", name, f"{name}.#"))

        async def confirms() -> None:
            assert await it(exchange.publish(b"1", key="eu.de", confirm="disk")) == 1
            assert await it((await it(broker.queue("us"))).confirm()) == "disk"
            assert await it((await it(broker.queue("eu"))).confirm()) == "disk"

        await result(beside(api, confirms()))

    with journaling(api.vhost, tmp_path / "journal"):
        api.run(publish)


async def regions(broker: Any) -> Any:
    """An exchange with two durable queues, and one in memory that gets everything."""
    exchange = await it(broker.declare_exchange("x", "topic"))
    for name, key in (("eu", "eu.#"), ("us", "us.#"), ("all", "#")):
        await it(broker.declare_queue(name, durable=name != "all"))
        await it(broker.bind("x", name, key))
    return exchange


def test_of_an_exchange_the_durable_queues_count_that_have_the_message(
    api: Api, tmp_path: Path
) -> None:
    async def publish(api: Api, broker: Any) -> None:
        exchange = await regions(broker)
        assert await it(exchange.publish(b"1", key="eu.de", confirm="disk")) == 1
        assert await it(exchange.publish(b"1", key="eu.de")) == 2
        assert await it(exchange.publish(b"1", key="asia", confirm="disk", mandatory=True)) == 0
        await it(broker.unbind("x", "all", "#"))
        with pytest.raises(Unroutable):
            await it(exchange.publish(b"1", key="asia", confirm="disk", mandatory=True))
        to_queues = await it(broker.exchange(""))
        assert await it(to_queues.publish(b"1", key="us", confirm="disk")) == 1

    with journaling(api.vhost, tmp_path / "journal"):
        api.run(publish)


@pytest.mark.parametrize("after", [3600, 0])
def test_of_what_is_delivered_later_through_an_exchange_the_same_count(
    api: Api, tmp_path: Path, after: float
) -> None:
    """Or at once, as its time is over."""

    async def publish(api: Api, broker: Any) -> None:
        exchange = await regions(broker)
        to_queues = await it(broker.exchange(""))

        async def count(to: Any, key: str, **more: Any) -> int:
            done = await it(to.publish(b"1", key=key, deliver_after=after, **more))
            return int(done)

        assert await count(exchange, "eu.de") == 2
        assert await count(exchange, "eu.de", confirm="disk") == 1
        assert await count(exchange, "asia", confirm="disk", mandatory=True) == 0
        assert await count(to_queues, "us", confirm="disk") == 1
        assert await count(to_queues, "all", confirm="disk") == 0
        await it(broker.unbind("x", "all", "#"))
        with pytest.raises(Unroutable):
            await count(exchange, "asia", confirm="disk", mandatory=True)

    with journaling(api.vhost, tmp_path / "journal"):
        api.run(publish)


@pytest.mark.parametrize("verb", ["publish", "schedule", "commit"])
def test_what_goes_through_the_default_exchange_is_waited_for(api: Api, verb: str) -> None:
    async def publish(api: Api, broker: Any) -> None:
        await it(broker.declare_queue("q", durable=True))
        to_queues = await it(broker.exchange(""))
        with pytest.raises(Unconfirmed):
            if verb == "commit":
                transaction = broker.transaction()
                transaction.publish(to_queues, b"1", key="q")
                await it(transaction.commit(confirm="disk", timeout=SOON))
            else:
                after = {"deliver_after": 3600} if verb == "schedule" else {}
                await it(to_queues.publish(b"1", key="q", confirm="disk", timeout=SOON, **after))

    api.run(publish)


def test_what_was_scheduled_is_waited_for(api: Api, tmp_path: Path) -> None:
    async def schedule(api: Api, broker: Any) -> None:
        queue = await it(broker.declare_queue("q", durable=True))
        with journaling(api.vhost, tmp_path / "journal"):
            await it(queue.publish(b"1", timeout=PATIENCE))
        await it(queue.publish(b"2", deliver_after=3600, confirm="shm"))
        with pytest.raises(Unconfirmed):
            await it(queue.confirm(level="disk", timeout=0.05))
        with journaling(api.vhost, tmp_path / "journal", epoch=2):
            assert await it(queue.confirm(level="disk", timeout=PATIENCE)) == "disk"

    api.run(schedule)


def test_what_went_to_another_node_is_waited_for(api: Api, tmp_path: Path) -> None:
    async def ask(api: Api, broker: Any) -> None:
        queue = await it(broker.declare_queue("q", durable=True))
        with shmbroker.connect(f"shm://{api.vhost}") as node:
            way = node.declare_queue(f"$sf.town.{'ab' * 16}", durable=True)
            balanced(node.queue("q"), way, eligible=0b10)
            with pytest.raises(NoReply):
                await it(queue.request(b"1", timeout=0.05))
            assert way.published == 1
        with pytest.raises(Unconfirmed):
            await it(queue.confirm(level="disk", timeout=0.05))
        with journaling(api.vhost, tmp_path / "journal"):
            assert await it(queue.confirm(level="disk", timeout=PATIENCE)) == "disk"

    api.run(ask)


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_unconfirmed_is_waited_for_again_by_its_error(
    api: Api, tmp_path: Path, verb: str
) -> None:
    async def ask(api: Api, broker: Any) -> None:
        queue = await it(broker.declare_queue("q", durable=True))
        with pytest.raises(Unconfirmed) as first:
            await VERBS[verb](broker, queue)
        with pytest.raises(Unconfirmed) as again:
            asked = first.value.confirm(timeout=SOON)
            assert isawaitable(asked)
            await asked

        async def confirms() -> None:
            await it(again.value.confirm(timeout=PATIENCE))

        confirming = beside(api, confirms())
        with journaling(api.vhost, tmp_path / "journal"):
            await result(confirming)

    api.run(ask)


def test_an_error_that_can_ask_nobody_is_raised_again() -> None:
    error = Unconfirmed("nobody knows")
    with pytest.raises(Unconfirmed) as again:
        error.confirm()
    assert again.value is error
