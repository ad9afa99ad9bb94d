"""One suite for the API of a client: in shared memory and over a link, with threads and asyncio.

What cannot be over a link is listed at the end, by name, with its NotLocal.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import shmbroker
from shmbroker import Empty, InvalidArgument, NotFound, NotLocal, QueueFull
from shmbroker.netbridge.client.not_local import OF_ASYNCIO, REASONS
from tests.support.client_api import Api, each, in_each_way, it, leave, some


async def a_queue(broker: Any, name: str = "q", **settings: Any) -> Any:
    return await it(broker.declare_queue(name, **settings))


async def bodies(queue: Any) -> list[bytes]:
    """All that is there, which is taken."""
    depth = (await it(queue.statistics())).depth
    return [await it(queue.receive(timeout=60)) for _ in range(depth)]


# --- publishing -----------------------------------------------------------------------------------


@in_each_way
async def test_what_is_published_is_received(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    assert await it(queue.publish(b"one")) == 0
    assert await it(queue.publish(b"two")) == 1
    assert await it(queue.receive(timeout=60)) == b"one"
    assert await it(queue.receive(timeout=60)) == b"two"


@in_each_way
async def test_a_message_has_all_that_it_was_published_with(api: Api, broker: Any) -> None:
    queue = await a_queue(broker, priorities=True)
    before = time.time_ns()
    await it(
        queue.publish(
            b"body", key="k.1", properties={"a": 1, "b": "two"}, priority=7, ttl=timedelta(hours=1)
        )
    )
    message = await it(queue.get(timeout=60))
    assert (message.body, bytes(message.view), message.key) == (b"body", b"body", "k.1")
    assert message.properties == {"a": 1, "b": "two"}
    assert (message.position, message.priority, message.queue) == (0, 7, "q")
    assert (message.deliveries, message.redelivered, message.is_in_hand) == (0, False, True)
    assert message.expires_at is not None
    left = message.expires_at - datetime.now(UTC)
    assert timedelta(minutes=59) < left <= timedelta(hours=1, seconds=1)
    assert before - 10**9 < message.published_at < time.time_ns() + 10**9
    await it(message.ack())


@in_each_way
async def test_any_buffer_is_a_body(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    for body in (b"", bytearray(b"array"), memoryview(b"view"), bytes(300_000)):
        await it(queue.publish(body))
        assert await it(queue.receive(timeout=60)) == bytes(body)
    with pytest.raises(InvalidArgument):
        await it(queue.publish("text"))


@in_each_way
async def test_many_are_published_in_their_order(api: Api, broker: Any) -> None:
    queue = await a_queue(broker, slots=8192)
    sent = [str(number).encode() for number in range(6000)]
    assert await it(queue.publish_many(sent)) == 6000
    assert await it(queue.publish_many([])) == 0
    got: list[bytes] = []
    while len(got) < 6000:
        got += await it(queue.receive_many(500, timeout=60))
    assert got == sent


@in_each_way
async def test_a_full_queue_is_told_and_takes_what_fits(api: Api, broker: Any) -> None:
    queue = await a_queue(broker, slots=8)
    with pytest.raises(QueueFull) as caught:
        await it(queue.publish_many([b"x"] * 12, timeout=0))
    assert caught.value.published == 8
    with pytest.raises(QueueFull):
        await it(queue.publish(b"x", timeout=0))
    with pytest.raises(QueueFull):
        await it(queue.publish(b"x", timeout=0.05))
    assert len(await bodies(queue)) == 8
    assert isinstance(await it(queue.publish(b"again", timeout=0)), int)


@in_each_way
async def test_an_id_counts_once(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    assert await it(queue.publish(b"1", message_id="a")) == 0
    assert await it(queue.publish(b"2", message_id="a")) is None
    assert isinstance(await it(queue.publish(b"3", message_id=b"b")), int)
    message = await it(queue.get(timeout=60))
    assert (message.body, message.message_id) == (b"1", "a")
    await it(message.ack())
    assert await bodies(queue) == [b"3"]


@in_each_way
async def test_unknown_options_are_refused(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    with pytest.raises(TypeError, match="prioriti"):
        await it(queue.publish(b"x", prioriti=3))
    with pytest.raises(InvalidArgument):
        await it(queue.publish(b"x", priority=12))
    with pytest.raises(InvalidArgument):
        await it(queue.publish(b"x", confirm="disk"))
    with pytest.raises(InvalidArgument):
        await it(queue.publish(b"x", timeout=-1))


@in_each_way
async def test_a_serializer_makes_bodies_of_values(api: Api, broker: Any) -> None:
    await a_queue(broker)
    queue = await it(broker.queue("q", serializer="json"))
    await it(queue.publish({"a": [1, 2]}))
    await it(queue.publish_many([1, 2]))
    message = await it(queue.get(timeout=60))
    assert message.value == {"a": [1, 2]}
    await it(message.ack())
    assert await it(queue.receive(timeout=60)) == 1
    assert await it(queue.receive_many(timeout=60)) == [2]


# --- taking ---------------------------------------------------------------------------------------


@in_each_way
async def test_nothing_to_take_is_empty_in_time(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    with pytest.raises(Empty):
        await it(queue.get(timeout=0))
    before = time.monotonic()
    with pytest.raises(Empty):
        await it(queue.receive(timeout=0.2))
    assert 0.19 < time.monotonic() - before < 5
    with pytest.raises(Empty):
        await it(queue.get_many(5, timeout=0))


@in_each_way
async def test_what_is_given_back_comes_again_flagged(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    await it(queue.publish(b"x"))
    message = await it(queue.get(timeout=60))
    await it(message.give_back())
    again = await it(queue.get(timeout=60))
    assert (again.body, again.deliveries, again.redelivered) == (b"x", 1, True)
    await it(again.nack())
    await it((await it(queue.get(timeout=60))).ack())
    assert (await it(queue.statistics())).depth == 0


@in_each_way
async def test_what_is_rejected_goes_to_the_dead_letter_queue(api: Api, broker: Any) -> None:
    dead = await a_queue(broker, "dead")
    queue = await a_queue(broker, dead_letter="dead")
    await it(queue.publish(b"bad"))
    await it((await it(queue.get(timeout=60))).reject())
    message = await it(dead.get(timeout=60))
    assert message.body == b"bad"
    await it(message.ack())


@in_each_way
async def test_a_message_is_dealt_with_once(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    await it(queue.publish(b"x"))
    message = await it(queue.get(timeout=60))
    await it(message.ack())
    assert not message.is_in_hand
    with pytest.raises(shmbroker.AlreadyDealtWith):
        await it(message.ack())
    with pytest.raises(shmbroker.DeliveryRevoked):
        await it(message.give_back())


@in_each_way
async def test_with_acknowledges_or_gives_back(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    await it(queue.publish(b"x"))
    if api.style == "sync":
        with pytest.raises(ZeroDivisionError), queue.get(timeout=60):
            raise ZeroDivisionError
        with queue.get(timeout=60) as message:
            assert message.redelivered
    else:
        with pytest.raises(ZeroDivisionError):
            async with queue.get(timeout=60):
                raise ZeroDivisionError
        async with queue.get(timeout=60) as message:
            assert message.redelivered
    assert (await it(queue.statistics())).depth == 0


@in_each_way
async def test_a_message_that_is_dropped_is_given_back(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    await it(queue.publish(b"x"))
    message = await it(queue.get(timeout=60))
    del message
    again = await it(queue.get(timeout=60))
    assert again.redelivered
    await it(again.ack())


@in_each_way
async def test_several_are_taken_at_once(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    await it(queue.publish_many([b"1", b"2", b"3"]))
    taken = await it(queue.get_many(2, timeout=60))
    assert [message.body for message in taken] == [b"1", b"2"]
    for message in taken:
        await it(message.ack())
    assert await it(queue.receive_many(10, timeout=60)) == [b"3"]


@in_each_way
async def test_a_selector_takes_what_it_wants(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    for number in range(4):
        await it(queue.publish(b"%d" % number, properties={"n": number}))
    message = await it(queue.get("n = 2", timeout=60))
    assert message.body == b"2"
    await it(message.ack())
    with pytest.raises(Empty):
        await it(queue.get("n = 7", timeout=0))
    with pytest.raises(shmbroker.SelectorError):
        await it(queue.get("n =", timeout=0))
    loop = queue.consume(selector="n > 0", timeout=60)
    assert await some(2, loop) == [b"1", b"3"]
    await leave(loop)
    assert await some(1, queue.consume(selector="n > 0", timeout=0.3)) == []


@pytest.mark.parametrize("prefetch", [1, 10])
def test_a_loop_takes_all(api: Api, prefetch: int) -> None:
    async def program(api: Api, broker: Any) -> None:
        queue = await a_queue(broker)
        sent = [b"%d" % number for number in range(30)]
        await it(queue.publish_many(sent))
        loop = queue.consume(timeout=60, prefetch=prefetch)
        assert await some(len(sent), loop) == sent
        await leave(loop)
        assert (await it(queue.statistics())).depth == 0
        assert await some(1, queue.consume(timeout=0.3, prefetch=prefetch)) == []

    api.run(program)


@in_each_way
async def test_a_loop_that_is_left_gives_back(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    await it(queue.publish_many([b"%d" % number for number in range(6)]))
    loop = queue.consume(timeout=5, prefetch=4)
    async for message in each(loop):
        if message.body == b"2":
            break
    await leave(loop)
    given_back = [await it(queue.receive(timeout=60)) for _ in range(4)]
    assert given_back == [b"2", b"3", b"4", b"5"]


# --- looking --------------------------------------------------------------------------------------


@in_each_way
async def test_browsing_takes_nothing(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    await it(queue.publish(b"1", key="a", properties={"x": 1}))
    await it(queue.publish(b"2"))
    seen = [message async for message in each(queue.browse())]
    assert [(message.body, message.key) for message in seen] == [(b"1", "a"), (b"2", None)]
    assert seen[0].properties == {"x": 1}
    message = await it(queue.get(timeout=60))
    (holder,), seen = await it(queue.holders()), [m async for m in each(queue.browse())]
    assert holder.participant in {each.id for each in await it(broker.participants())}
    assert [(m.is_taken, m.taken_by) for m in seen] == [(True, holder.participant), (False, None)]
    assert (holder.taken, holder.bytes, holder.position) == (1, 1, 0)
    await it(message.give_back())
    assert await it(queue.holders()) == []
    assert (await it(queue.statistics())).depth == 2


@in_each_way
async def test_statistics_are_those_of_the_queue(api: Api, broker: Any) -> None:
    queue = await a_queue(broker, slots=16)
    await it(queue.publish_many([b"1", b"2", b"3"]))
    await it(queue.receive(timeout=60))
    told = await it(queue.statistics())
    assert (told.depth, told.published, told.acked, told.slots) == (2, 3, 1, 16)
    assert isinstance(told, shmbroker.QueueStatistics)
    assert bool(queue)
    if api.style == "sync":
        assert (len(queue), queue.published, queue.is_paused) == (2, 3, False)


@in_each_way
async def test_everything_is_listed(api: Api, broker: Any) -> None:
    await a_queue(broker, "one")
    await it(broker.declare_exchange("x", "topic"))
    await it(broker.bind("x", "one", "a.#"))
    await it(broker.settings("big.#", ttl=5.0))
    assert [queue.name for queue in await it(broker.queues())] == ["one"]
    assert "x" in [exchange.name for exchange in await it(broker.exchanges())]
    assert ("x", "one", "a.#") in [
        (each.exchange, each.destination, each.key) for each in await it(broker.bindings())
    ]
    assert [pattern.pattern for pattern in await it(broker.patterns())] == ["big.#"]
    assert await it(broker.participants())
    assert isinstance(await it(broker.errors()), list)
    await it(broker.remove_settings("big.#"))
    assert await it(broker.patterns()) == []


@in_each_way
async def test_settings_are_explained(api: Api, broker: Any) -> None:
    queue = await a_queue(broker, ttl=2.5)
    told = await it(queue.explain())
    assert told["ttl"].value == 2.5


@in_each_way
async def test_the_last_value_of_a_key(api: Api, broker: Any) -> None:
    queue = await a_queue(broker, last_value=True, non_destructive=True)
    await it(queue.publish(b"1", key="a"))
    await it(queue.publish(b"2", key="a"))
    assert (await it(queue.value("a"))).body == b"2"
    assert await it(queue.value("b")) is None


# --- declaring and managing -----------------------------------------------------------------------


@in_each_way
async def test_what_does_not_exist_is_not_found(api: Api, broker: Any) -> None:
    with pytest.raises(NotFound):
        await it(broker.queue("none"))
    with pytest.raises(NotFound):
        await it(broker.exchange("none"))
    with pytest.raises(NotFound):
        await it(broker.delete_queue("none"))


@in_each_way
async def test_a_queue_that_is_declared_differently(api: Api, broker: Any) -> None:
    await a_queue(broker, slots=16)
    await a_queue(broker)
    with pytest.raises(shmbroker.DeclaredDifferently):
        await a_queue(broker, slots=32)
    with pytest.raises(InvalidArgument):
        await a_queue(broker, "other", slots=-1)
    with pytest.raises(shmbroker.InvalidName):
        await a_queue(broker, "")


@in_each_way
async def test_a_queue_that_is_deleted_is_gone(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    await it(queue.publish(b"x"))
    await it(queue.delete())
    with pytest.raises(NotFound):
        await it(queue.publish(b"x"))
    again = await a_queue(broker)
    assert await it(again.publish(b"y")) == 0


@in_each_way
async def test_an_operator_purges_moves_and_pauses(api: Api, broker: Any) -> None:
    queue, other = await a_queue(broker), await a_queue(broker, "other")
    await it(queue.publish_many([b"1", b"2", b"3"]))
    assert await it(queue.copy_to(other, 1)) == 1
    assert await it(queue.move_to(other, 2)) == 2
    assert await it(queue.purge()) == 1
    await it(other.pause())
    assert (await it(other.statistics())).is_paused
    with pytest.raises(Empty):
        await it(other.get(timeout=0))
    await it(other.resume())
    assert await bodies(other) == [b"1", b"1", b"2"]
    assert await it(queue.expire()) == 0


@in_each_way
async def test_an_exchange_publishes_to_what_is_bound(api: Api, broker: Any) -> None:
    one, two = await a_queue(broker, "one"), await a_queue(broker, "two")
    exchange = await it(broker.declare_exchange("x", "topic"))
    await it(broker.bind(exchange, one, "a.*"))
    await it(broker.bind("x", "two", "#"))
    assert await it(exchange.publish(b"1", key="a.b")) == 2
    assert await it(exchange.publish(b"2", key="c")) == 1
    await it(broker.unbind("x", "two", "#"))
    assert await it(exchange.publish(b"3", key="c")) == 0
    with pytest.raises(shmbroker.Unroutable):
        await it(exchange.publish(b"3", key="c", mandatory=True))
    assert exchange.kind == (await it(broker.exchange("x"))).kind == "topic"
    assert await bodies(one) == [b"1"]
    assert await bodies(two) == [b"1", b"2"]
    await it(broker.unbind("x", "one", "a.*"))
    await it(broker.delete_exchange("x"))


@in_each_way
async def test_what_is_scheduled_comes_later(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    number = await it(queue.publish(b"later", deliver_after=60))
    never = await it(queue.publish(b"never", deliver_after=120))
    with pytest.raises(Empty):
        await it(queue.get(timeout=0))
    assert [message.body for message in await it(queue.scheduled())] == [b"later", b"never"]
    assert number > 0
    for scheduled in (never, number):
        assert await it(queue.cancel_scheduled(scheduled))
        assert not await it(queue.cancel_scheduled(scheduled))
    await it(queue.publish(b"soon", deliver_after=0.3))
    assert await it(queue.receive(timeout=60)) == b"soon"


@in_each_way
async def test_a_temporary_queue_has_a_name_of_its_own(api: Api, broker: Any) -> None:
    queue = await it(broker.temporary_queue(slots=16))
    await it(queue.publish(b"x"))
    assert queue.name in [each.name for each in await it(broker.queues())]
    assert await it(queue.receive(timeout=60)) == b"x"
    await it(broker.close())
    again = await api.connect()
    assert await it(again.queues()) == []


# --- subscriptions --------------------------------------------------------------------------------


@in_each_way
async def test_a_subscriber_sees_every_message(api: Api, broker: Any) -> None:
    queue = await a_queue(broker, slots=64)
    await it(queue.publish(b"before"))
    earliest = broker.subscribe("q", start="earliest", timeout=60)
    now = broker.subscribe("q", timeout=60)
    assert (await it(earliest.get(timeout=60))).body == b"before"
    with pytest.raises(Empty):
        await it(now.get(timeout=0.05))
    await it(queue.publish_many([b"%d" % number for number in range(200)][:60]))
    for subscription in (now, earliest):
        assert len(await some(60, subscription)) == 60
        with pytest.raises(Empty):
            await it(subscription.get(timeout=0.05))
    assert (await it(queue.statistics())).depth == 61
    now.close()
    earliest.close()


@in_each_way
async def test_a_subscription_collects_by_its_name(api: Api, broker: Any) -> None:
    exchange = await it(broker.declare_exchange("x", "direct"))
    collected = await it(broker.subscription("mine", exchange="x", key="k", durable=False))
    await it(exchange.publish(b"1", key="k"))
    assert await it(collected.receive(timeout=60)) == b"1"
    assert collected.subscription == "mine"
    assert [each.name for each in await it(broker.subscriptions())] == ["mine"]
    await it(collected.close())
    assert await it(broker.subscriptions()) == []


# --- transactions, requests -----------------------------------------------------------------------


@in_each_way
async def test_a_transaction_happens_whole(api: Api, broker: Any) -> None:
    queue, other = await a_queue(broker), await a_queue(broker, "other")
    await it(queue.publish(b"taken"))
    transaction = broker.transaction()
    inside = transaction.queue(queue)
    message = await it(inside.get(timeout=60))
    message.ack()
    transaction.publish(other, b"1")
    transaction.queue(other).publish_many([b"2", b"3"])
    assert len(transaction) == 4
    assert (await it(other.statistics())).depth == 0
    await it(transaction.commit(timeout=60))
    assert await bodies(other) == [b"1", b"2", b"3"]
    assert (await it(queue.statistics())).depth == 0
    with pytest.raises(shmbroker.TransactionEnded):
        await it(transaction.commit())


@in_each_way
async def test_a_transaction_that_fails_leaves_nothing(api: Api, broker: Any) -> None:
    queue, other = await a_queue(broker), await a_queue(broker, "other")
    await it(queue.publish(b"taken"))
    transaction = broker.transaction()
    (await it(transaction.queue(queue).get(timeout=60))).ack()
    transaction.publish(other, b"1")
    transaction.rollback()
    assert (await it(other.statistics())).depth == 0
    again = await it(queue.get(timeout=60))
    assert again.redelivered
    await it(again.ack())


@in_each_way
async def test_a_request_is_replied_to(api: Api, broker: Any) -> None:
    import asyncio

    queue = await a_queue(broker)
    server = await api.connect()
    served = await it(server.queue("q"))

    async def serve() -> None:
        request = await it(served.get(timeout=60))
        await it(request.reply(request.body.upper(), properties={"x": 1}))
        await it(request.ack())

    if api.style == "sync":
        answering = asyncio.to_thread(lambda: asyncio.run(serve()))
        asking: Any = asyncio.to_thread(lambda: queue.request(b"hello", timeout=60))
    else:
        answering, asking = serve(), queue.request(b"hello", timeout=60)
    reply, _ = await asyncio.gather(asking, answering)
    assert (reply.body, reply.properties) == (b"HELLO", {"x": 1})
    with pytest.raises(shmbroker.NoReply):
        await it(queue.request(b"nobody", timeout=0.1))


# --- what cannot be -------------------------------------------------------------------------------


async def _refused(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    exchange = await it(broker.declare_exchange("prices", "topic"))
    calls: dict[str, Callable[[], Any]] = {
        "Exchange.publish(immediate=True)": lambda: exchange.publish(b"x", immediate=True),
        "Queue.loan": lambda: queue.loan(10),
        "Queue.producer": lambda: queue.producer("p"),
        "Queue.move_to(timeout=...)": lambda: queue.move_to(queue, timeout=1),
        "Queue.port": lambda: queue.port(),
        "Queue.histograms": lambda: queue.histograms(),
        "Queue.latency": lambda: queue.latency(True),
        "Broker.repair": lambda: broker.repair(),
        "Broker.repair_for": lambda: broker.repair_for(0),
        "Broker.returned": lambda: broker.returned(),
        "Broker.participant": lambda: broker.participant,
        "Broker.subscribe(lossy=True)": lambda: broker.subscribe("q", lossy=True),
        "Transaction.confirm": lambda: broker.transaction().confirm(),
        "Transaction.publish(deliver_after=...)": lambda: broker.transaction().publish(
            queue, b"x", deliver_after=1
        ),
        "Transaction.publish(mandatory=True)": lambda: broker.transaction().publish(
            queue, b"x", mandatory=True
        ),
    }
    assert calls.keys() == REASONS.keys()
    for name, call in calls.items():
        with pytest.raises(NotLocal) as caught:
            await it(call())
        assert name in str(caught.value)
        assert REASONS[name] in str(caught.value)


def test_what_cannot_be_over_a_link_says_why(api: Api) -> None:
    if api.is_over_link:
        api.run(_refused)


async def _refused_with_asyncio(api: Api, broker: Any) -> None:
    queue = await a_queue(broker)
    calls: dict[str, Callable[[], Any]] = {
        "Queue.published": lambda: queue.published,
        "Queue.confirmed": lambda: queue.confirmed,
        "Queue.level": lambda: queue.level,
        "Queue.is_paused": lambda: queue.is_paused,
        "Queue.__len__": lambda: len(queue),
        "Queue.get_nowait": lambda: queue.get_nowait(),
        "Queue.publish_nowait": lambda: queue.publish_nowait(b"x"),
    }
    assert calls.keys() == OF_ASYNCIO.keys()
    for name, call in calls.items():
        with pytest.raises(NotLocal) as caught:
            call()
        assert name in str(caught.value)
        assert OF_ASYNCIO[name] in str(caught.value)


def test_what_asks_the_broker_is_awaited_with_asyncio(api: Api) -> None:
    if api.is_over_link and api.style == "asyncio":
        api.run(_refused_with_asyncio)
