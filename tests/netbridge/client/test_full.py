"""What waits for room in one queue holds up nothing of another one: in each way to connect."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import shmbroker
import shmbroker.aio
from shmbroker import ArenaFull, Broker, MessageTooLarge, QueueFull
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.netbridge.remote.session import SessionLimits
from shmbroker.netbridge.serving.commit import Commit
from shmbroker.netbridge.serving.producer import Producer
from shmbroker.netbridge.wire.words import Verb
from tests.support.client_api import PATIENCE, Api, Begun, beside, it, result
from tests.support.serving import Site

SLOTS = 8
TRIES_MAX = 200
"""In a second, with naps of some milliseconds."""
MANY = 3000
"""More than may be open for a producer."""
LARGE = [bytes(100 << 10)] * 12
"""More than a window."""


async def waiting(api: Api, broker: Any) -> tuple[Any, Begun]:
    """A queue that is full, and what waits for room in it."""

    async def fills() -> int:
        published: int = await it(full.publish_many(LARGE, timeout=PATIENCE))
        return published

    full = await it(broker.declare_queue("full", slots=SLOTS))
    await it(full.publish_many([b"small"] * SLOTS))
    begun = beside(api, fills())
    while api.is_over_link and not broker._session._client.calls.waiting:
        await asyncio.sleep(0.001)
    return full, begun


async def _goes_on(api: Api, broker: Any) -> None:
    other = await it(broker.declare_queue("other"))
    full, begun = await waiting(api, broker)
    await it(other.publish(b"x", timeout=PATIENCE))
    assert (await it(other.statistics())).depth == 1
    assert not begun.done()
    for _ in range(SLOTS + len(LARGE)):
        await it(full.receive(timeout=PATIENCE))
    assert await result(begun) == len(LARGE)


def test_other_queues_are_used_while_one_is_full(api: Api) -> None:
    api.run(_goes_on)


async def _ends_in_its_time(api: Api, broker: Any) -> None:
    full = await it(broker.declare_queue("full", slots=SLOTS))
    await it(full.publish_many([b"small"] * SLOTS))

    async def publishes(timeout: float) -> None:
        await it(full.publish(b"x", timeout=timeout))

    for each in [beside(api, publishes(timeout)) for timeout in (0.1, 0.1, 0.2)]:
        with pytest.raises(QueueFull):
            await result(each)


def test_each_that_waits_for_room_ends_in_its_time(api: Api) -> None:
    api.run(_ends_in_its_time)


async def _is_said(api: Api, broker: Any, begun: Begun) -> None:
    while api.is_over_link and not begun.done():
        if broker._session._client.calls.of(Verb.PUBLISH):
            return
        await asyncio.sleep(0.001)


async def _is_waiting(api: Api, broker: Any, begun: Begun) -> None:
    """Or about to, in a thread."""
    await _is_said(api, broker, begun)
    while (api.transport, api.style) == ("shm", "asyncio") and not broker._sleeper._watched:
        await asyncio.sleep(0)


async def _gets_bytes(api: Api, broker: Any) -> None:
    """The oldest is worked on, so the ring has no more room than before."""
    queue = await it(broker.declare_queue("q", max_bytes=8192))
    await it(queue.publish_many([bytes(2000)] * 3))
    _oldest, *others = await it(queue.get_many(3, timeout=PATIENCE))

    async def publishes() -> None:
        await it(queue.publish(bytes(4000)))

    begun = beside(api, publishes())
    await _is_waiting(api, broker, begun)
    for message in others:
        await it(message.ack())
    await result(begun)


def test_bytes_that_are_free_are_found_whatever_is_the_oldest(api: Api) -> None:
    api.run(_gets_bytes)


async def _gets_its_share(api: Api, broker: Any) -> None:
    body = bytes(50_000)
    one, other = [
        await it(broker.declare_queue(name, max_producer_bytes="1MiB")) for name in ("one", "other")
    ]
    with pytest.raises(QueueFull):
        while True:
            await it(one.publish(body, timeout=0))

    async def publishes() -> None:
        await it(other.publish(body))

    begun = beside(api, publishes())
    await _is_waiting(api, broker, begun)
    await it(one.purge())
    await result(begun)


def test_its_share_is_found_whichever_queue_had_it(api: Api) -> None:
    api.run(_gets_its_share)


async def _is_behind_many(api: Api, broker: Any) -> None:
    full = await it(broker.declare_queue("full", slots=SLOTS))
    await it(full.publish_many([b"small"] * SLOTS))

    async def publishes_many() -> None:
        await it(full.publish_many([b"x"] * MANY, timeout=0.1))

    async def publishes() -> None:
        await it(full.publish(b"y", timeout=PATIENCE))

    first = beside(api, publishes_many())
    await _is_said(api, broker, first)
    behind = beside(api, publishes())
    with pytest.raises(QueueFull):
        await result(first)
    for _ in range(SLOTS):
        await it(full.receive(timeout=PATIENCE))
    await result(behind)


def test_what_is_behind_many_whose_time_is_over_is_published(api: Api) -> None:
    api.run(_is_behind_many)


async def _waits_no_more(api: Api, broker: Any) -> None:
    for name, slots in (("full", SLOTS), ("free", 64)):
        await it(broker.declare_queue(name, slots=slots))
    exchange = await it(broker.declare_exchange("both", "direct"))
    for name in ("full", "free"):
        await it(broker.bind("both", name, name))
    await it((await it(broker.queue("full"))).publish_many([b"small"] * SLOTS))

    async def publishes() -> None:
        await it(exchange.publish(b"x", key="full", timeout=0.1))

    begun = beside(api, publishes())
    await _is_said(api, broker, begun)
    await it(exchange.publish(b"y", key="free", timeout=PATIENCE))
    with pytest.raises(QueueFull):
        await result(begun)


def test_what_is_behind_one_whose_time_is_over_goes_where_there_is_room(api: Api) -> None:
    api.run(_waits_no_more)


async def _is_refused(api: Api, broker: Any) -> None:
    exchange = await it(broker.declare_exchange("all", "direct"))
    small = await it(broker.declare_queue("small", max_bytes=4096))
    full = await it(broker.declare_queue("full", slots=SLOTS, when_full="fail"))
    await it(full.publish_many([b"small"] * SLOTS))
    for queue in (small, full):
        await it(broker.bind("all", queue, queue.name))
    with pytest.raises(MessageTooLarge):
        await it(exchange.publish(bytes(10_000), key="small", timeout=PATIENCE))
    began = time.monotonic()
    with pytest.raises(QueueFull):
        await it(exchange.publish(b"x", key="full", timeout=PATIENCE))
    assert time.monotonic() - began < PATIENCE / 2, "it has waited"
    assert await it(exchange.publish(b"y", key="small", timeout=PATIENCE)) == 1
    assert await it(small.receive(timeout=PATIENCE)) == b"y"


def test_what_a_queue_behind_an_exchange_refuses_is_an_error(api: Api) -> None:
    api.run(_is_refused)


async def _commits(api: Api, broker: Any) -> None:
    full, begun = await waiting(api, broker)
    left = SLOTS + len(LARGE)
    while left:
        transaction = broker.transaction()
        for message in await it(full.get_many(SLOTS, timeout=PATIENCE)):
            await it(transaction.ack(message))
            left -= 1
        await it(transaction.commit(timeout=PATIENCE))
    assert await result(begun) == len(LARGE)


def test_a_commit_makes_the_room_that_is_waited_for(api: Api) -> None:
    api.run(_commits)


async def _commits_by_an_exchange(api: Api, broker: Any) -> None:
    queue = await it(broker.declare_queue("q", slots=SLOTS))
    exchange = await it(broker.declare_exchange("x", "fanout"))
    await it(broker.bind("x", "q"))
    await it(queue.publish_many([b"x"] * SLOTS))
    transaction = broker.transaction()
    await it(transaction.publish(exchange, b"last"))

    async def commits() -> None:
        await it(transaction.commit(timeout=PATIENCE))

    begun = beside(api, commits())
    while api.is_over_link and not (begun.done() or broker._session._client.calls.sent):
        await asyncio.sleep(0.001)
    assert await it(queue.receive(timeout=PATIENCE)) == b"x"
    await result(begun)
    assert (await it(queue.receive_many(SLOTS, timeout=PATIENCE)))[-1] == b"last"


def test_a_commit_waits_for_room_behind_an_exchange(api: Api) -> None:
    api.run(_commits_by_an_exchange)


def tries(monkeypatch: pytest.MonkeyPatch, of: type[Any], verb: str) -> list[None]:
    """One for each call of this."""
    made: list[None] = []
    method = getattr(of, verb)

    def counted(self: Any) -> None:
        made.append(None)
        method(self)

    monkeypatch.setattr(of, verb, counted)
    return made


def over_link(site: Site) -> Broker:
    password = "correct horse battery"
    return shmbroker.connect(f"tcp://127.0.0.1:{site.port}", user="site", password=password)


@pytest.mark.parametrize("by_exchange", [False, True])
def test_room_for_a_part_of_a_transaction_is_not_tried_all_the_time(
    served: Site, monkeypatch: pytest.MonkeyPatch, by_exchange: bool
) -> None:
    made = tries(monkeypatch, Commit, "go_on")
    with over_link(served) as broker:
        queue = broker.declare_queue("q", slots=SLOTS)
        queue.publish_many([b"x"] * (SLOTS - 2))
        broker.declare_exchange("x", "fanout")
        broker.bind("x", "q")
        to = broker.exchange("x") if by_exchange else queue
        transaction = broker.transaction()
        for _ in range(5):
            transaction.publish(to, b"y")
        with pytest.raises(QueueFull):
            transaction.commit(timeout=1.0)
        assert len(queue) == SLOTS - 2
    assert len(made) < TRIES_MAX


def test_a_publish_waits_for_the_arena_without_trying_all_the_time(
    vhost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tries(monkeypatch, Producer, "_go_on")
    vhosts.delete(vhost)
    vhosts.create(vhost, arena_bytes=1 << 20)
    with shmbroker.connect(f"shm://{vhost}") as local:
        site = Site(local, tmp_path)
        with site.served(), over_link(site) as broker, shmbroker.connect(f"shm://{vhost}") as other:
            queue = broker.declare_queue("q")
            hog = other.declare_queue("hog")
            with pytest.raises(ArenaFull):
                while True:
                    hog.publish(bytes(10_000))
            with pytest.raises(QueueFull):
                queue.publish(bytes(100_000), timeout=1.0)
            assert len(made) < TRIES_MAX
            local.queue("hog").purge()
            later = threading.Timer(0.1, other.close)
            later.start()
            queue.publish(bytes(100_000), timeout=PATIENCE)
            later.join()


def test_what_waits_for_room_waits_for_its_own_program(vhost: str, tmp_path: Path) -> None:
    """It alone is more than the broker carries out for one program at once."""

    async def whole(uri: str) -> None:
        connected = shmbroker.aio.connect(uri, user="site", password="correct horse battery")
        async with await connected as broker:
            queue = await broker.declare_queue("q", slots=SLOTS)
            await queue.publish_many([b"small"] * SLOTS)
            begun = [asyncio.create_task(queue.publish(bytes(5000))) for _ in range(2)]
            while len(broker._session._client.calls.sent) < len(begun):
                await asyncio.sleep(0)
            got: list[bytes] = []
            async with asyncio.timeout(PATIENCE):
                async for message in queue.consume(prefetch=1):
                    got.append(message.body)
                    await message.ack()
                    if len(got) == SLOTS + 2:
                        break
            await asyncio.gather(*begun)
            assert got == [b"small"] * SLOTS + [bytes(5000)] * 2

    with shmbroker.connect(f"shm://{vhost}", name="test") as broker:
        site = Site(broker, tmp_path, limits=SessionLimits(held=1000))
        with site.served():
            asyncio.run(whole(f"tcp://127.0.0.1:{site.port}"))
