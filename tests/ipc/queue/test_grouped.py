"""Where messages of a group go whose routes a broker keeps; here the test is the broker."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, GroupingTimeout, InvalidArgument, Queue, QueueFull, aio
from shmbroker.core.codes import INVALID, OK
from shmbroker.ipc._native import lib
from shmbroker.ipc.instance.leaving import FORCE_OF_BROKER
from shmbroker.ipc.queue.grouped import ASKED, ROUTES, SEPARATOR, TIMEOUT, USES, decision_limit
from shmbroker.ipc.sink.sink import Sink
from tests.support.host import journaling
from tests.support.records import chunk, record

WAY = "$sf.town.00"
PATIENCE = 60.0
ANNA = {"JMSXGroupID": "anna"}


@pytest.fixture
def queue(broker: Broker) -> Queue:
    """A queue with groups, of which a broker keeps routes."""
    broker.declare_queue(WAY)
    broker.declare_queue(ROUTES, last_value=True, when_full="fail")
    broker.declare_queue(ASKED)
    return broker.declare_queue("orders", groups=True)


def without_routes(broker: Broker) -> None:
    assert lib.sb_delete_queue(broker._connection, ROUTES.encode(), FORCE_OF_BROKER) == OK


def route(broker: Broker, group: str, to: str, queue: str = "orders") -> None:
    broker.queue(ROUTES).publish(to.encode(), key=f"{queue}{SEPARATOR}{group}", ttl=60)


def asked(broker: Broker) -> list[tuple[str | None, bytes]]:
    found = []
    while broker.queue(ASKED).statistics().depth:
        with broker.queue(ASKED).get(timeout=0) as message:
            found.append((message.key, bytes(message.body)))
            message.ack()
    return found


def depths(broker: Broker) -> tuple[int, int]:
    return broker.queue("orders").statistics().depth, broker.queue(WAY).statistics().depth


def test_without_routes_groups_are_of_their_queue_alone(broker: Broker, queue: Queue) -> None:
    without_routes(broker)
    queue.publish(b"", group="anna")
    assert depths(broker) == (1, 0)


def test_a_known_route_is_followed(broker: Broker, queue: Queue) -> None:
    route(broker, "anna", "orders")
    route(broker, "berta", WAY)
    queue.publish(b"1", group="anna")
    queue.publish(b"2", group="berta", key="k", properties={"kind": "coffee"}, priority=None)
    queue.publish(b"3")
    assert depths(broker) == (2, 1)
    [moved] = broker.queue(WAY).browse()
    assert (bytes(moved.body), moved.key) == (b"2", "k")
    assert dict(moved.properties) == {"kind": "coffee", "JMSXGroupID": "berta"}
    assert asked(broker) == []
    broker.declare_queue("plain")  # without groups
    broker.queue("plain").publish(b"", group="berta")
    assert broker.queue("plain").statistics().depth == 1


def test_by_the_default_exchange_it_is_followed_and_by_others_each_node_has_its_copy(
    broker: Broker, queue: Queue
) -> None:
    route(broker, "anna", WAY)
    broker.exchange("").publish(b"", key="orders", properties=ANNA)
    assert depths(broker) == (0, 1)
    broker.declare_exchange("shop", "fanout")
    broker.bind("shop", "orders")
    broker.exchange("shop").publish(b"", key="", properties=ANNA)
    assert depths(broker) == (1, 1)


def test_what_it_is_asked_by_is_never_paused(broker: Broker, queue: Queue) -> None:
    """Nobody could undo it, and no new group would have a route."""
    for name in (ROUTES, ASKED):
        with pytest.raises(InvalidArgument, match="never paused"):
            broker.queue(name).pause()


def test_an_unknown_route_is_asked_for_and_waited_for(broker: Broker, queue: Queue) -> None:
    done: list[int] = []
    thread = threading.Thread(target=lambda: done.append(queue.publish(b"", group="anna")))
    thread.start()
    with broker.queue(ASKED).get(timeout=PATIENCE) as message:
        assert (message.key, bytes(message.body)) == ("orders", b"anna")
        message.ack()
    route(broker, "other", WAY)  # news that is not for it
    assert not done
    route(broker, "anna", WAY)
    thread.join(PATIENCE)
    assert len(done) == 1
    assert depths(broker) == (0, 1)


def test_what_is_not_decided_in_time_is_not_published(broker: Broker, queue: Queue) -> None:
    broker.queue(ROUTES).publish(b"50", key=TIMEOUT)
    assert decision_limit(broker) == 0.05
    for timeout in (None, 0, 0.01, PATIENCE):
        with pytest.raises(GroupingTimeout, match="group 'anna' of queue 'orders'") as error:
            queue.publish(b"", group="anna", timeout=timeout)
        assert error.value.code == -54
        assert ("within" in str(error.value)) is (timeout != 0), "without a wait none is told of"
    assert asked(broker) == [("orders", b"anna")] * 4
    route(broker, "anna", "")  # it has none any more
    with pytest.raises(GroupingTimeout):
        queue.publish(b"", group="anna")
    assert depths(broker) == (0, 0)
    queue.publish(b"", timeout=0)
    assert depths(broker) == (1, 0)


def test_asyncio_waits_as_well(broker: Broker, queue: Queue) -> None:

    async def publish() -> None:
        async with aio.connect(f"shm://{broker.vhost}") as own:
            queue = await own.queue("orders")
            publishing = asyncio.create_task(queue.publish(b"", group="anna"))
            while not broker.queue(ASKED).statistics().depth:
                await asyncio.sleep(0.01)
            assert not publishing.done()
            route(broker, "anna", WAY)
            await publishing
            broker.queue(ROUTES).publish(b"50", key=TIMEOUT)
            with pytest.raises(GroupingTimeout, match="is not decided yet"):
                await queue.publish(b"", group="berta")

    asyncio.run(publish())
    assert depths(broker) == (0, 1)


async def has_asked(broker: Broker) -> None:
    while not asked(broker):
        await asyncio.sleep(0)


def test_asyncio_waits_for_room_when_it_is_decided(broker: Broker, queue: Queue) -> None:
    broker.queue(ROUTES).publish(b"1000", key=TIMEOUT)
    way = broker.queue(WAY)
    way.publish_many([b""] * way.slots)

    async def publish() -> None:
        async with aio.connect(f"shm://{broker.vhost}") as own:
            queue = await own.queue("orders")
            publishing = asyncio.create_task(queue.publish(b"", group="anna"))
            await has_asked(broker)
            route(broker, "anna", WAY)
            done, _ = await asyncio.wait([publishing], timeout=1.5)
            assert not done, "longer than a decision may take"
            way.get_nowait().ack()
            await publishing

    asyncio.run(publish())
    assert depths(broker) == (0, way.slots)


def test_asyncio_fails_at_once_when_it_is_decided_and_the_queue_fails(
    broker: Broker, queue: Queue
) -> None:
    broker.queue(ROUTES).publish(b"60000", key=TIMEOUT)
    queue.delete()
    broker.declare_queue("orders", groups=True, slots=2, when_full="fail").publish_many([b"", b""])

    async def publish() -> None:
        async with aio.connect(f"shm://{broker.vhost}") as own:
            queue = await own.queue("orders")
            publishing = asyncio.create_task(queue.publish(b"", group="anna", timeout=30))
            await has_asked(broker)
            route(broker, "anna", "orders")
            done, _ = await asyncio.wait([publishing], timeout=10)
            assert done
            with pytest.raises(QueueFull):
                await publishing

    asyncio.run(publish())


async def to_default(own: aio.Broker, **options: Any) -> int:
    exchange = await own.exchange("")
    return await exchange.publish(b"", **options)


Publishes = Callable[[aio.Broker, aio.Queue], Coroutine[Any, Any, object]]


@pytest.mark.parametrize(
    "publishes",
    [
        lambda own, queue: queue.producer("me").publish(b"", properties=ANNA),
        lambda own, queue: queue.publish(b"", group="anna", deliver_after=3600),
        lambda own, queue: to_default(own, key="orders", group="anna"),
    ],
    ids=["producer", "scheduled", "default-exchange"],
)
def test_asyncio_waits_for_a_decision_in_whatever_way_it_publishes(
    broker: Broker, queue: Queue, publishes: Publishes
) -> None:
    async def publish() -> None:
        async with aio.connect(f"shm://{broker.vhost}") as own:
            queue = await own.queue("orders")
            publishing = asyncio.create_task(publishes(own, queue))
            await has_asked(broker)
            assert not publishing.done()
            route(broker, "anna", "orders")
            await publishing

    asyncio.run(publish())
    assert depths(broker)[0] + len(list(queue.scheduled())) == 1


def test_in_a_transaction_it_goes_there_with_all_else_or_not_at_all(
    broker: Broker, queue: Queue
) -> None:
    broker.queue(ROUTES).publish(b"50", key=TIMEOUT)
    route(broker, "anna", WAY)
    with broker.transaction() as tx:
        tx.publish(queue, b"1", properties=ANNA)
        tx.publish(queue, b"2")
        assert depths(broker) == (0, 0)
    assert depths(broker) == (1, 1)
    with pytest.raises(GroupingTimeout), broker.transaction() as tx:
        tx.publish(queue, b"3", properties=ANNA)
        tx.publish(queue, b"4", properties={"JMSXGroupID": "berta"})
    assert depths(broker) == (1, 1)


def test_in_a_transaction_of_asyncio_the_commit_waits_for_it(broker: Broker, queue: Queue) -> None:
    async def publish() -> None:
        async with aio.connect(f"shm://{broker.vhost}") as own:
            queue, body = await own.queue("orders"), bytearray(b"1")
            tx = own.transaction()
            tx.publish(queue, body, group="anna")
            tx.queue("orders").publish(b"2", group="anna")
            tx.publish(await own.exchange(""), b"3", key="orders", properties=ANNA)
            tx.publish(queue, b"here")
            body[:] = b"x"  # it was copied
            assert len(tx) == 4
            committing = asyncio.create_task(tx.commit())
            while not broker.queue(ASKED).statistics().depth:
                await asyncio.sleep(0)
            assert not committing.done()
            route(broker, "anna", WAY)
            await committing
            assert [bytes(each.body) for each in broker.queue(WAY).browse()] == [b"1", b"2", b"3"]
            assert depths(broker) == (1, 3)

            broker.queue(ROUTES).publish(b"50", key=TIMEOUT)
            with pytest.raises(GroupingTimeout, match="is not decided yet"):
                async with own.transaction() as tx:
                    tx.publish(queue, b"", group="berta")
            tx = own.transaction()
            tx.publish(queue, b"", group="berta")
            tx.rollback()
            assert len(tx) == 0
            with pytest.raises(GroupingTimeout, match="is not decided yet"):
                queue.loan(5, properties={"JMSXGroupID": "berta"})

    asyncio.run(publish())
    assert depths(broker) == (1, 3)


def test_a_wait_in_a_transaction_or_for_a_loan_can_be_interrupted(
    broker: Broker, queue: Queue
) -> None:
    broker.queue(ROUTES).publish(b"60000", key=TIMEOUT)

    def interrupt() -> None:
        with broker.queue(ASKED).get(timeout=PATIENCE) as message:
            message.ack()
        signal.pthread_kill(main, signal.SIGINT)

    main, started = threading.get_ident(), time.monotonic()
    tx = broker.transaction()
    for waits in (lambda: tx.publish(queue, b"", group="a"), lambda: queue.loan(5, group="a")):
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            waits()
        thread.join()
    tx.rollback()
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("durable", [False, True])
def test_a_dead_letter_whose_group_has_no_route_stays_and_was_not_delivered(
    broker: Broker, queue: Queue, tmp_path: Path, durable: bool
) -> None:
    queue.delete()
    broker.queue(ROUTES).publish(b"60000", key=TIMEOUT)  # nobody waits for it
    with journaling(broker.vhost, tmp_path) if durable else nullcontext():
        letters = broker.declare_queue("orders", groups=True, dead_letter="dead", durable=durable)
        dead = broker.queue("dead")
        route(broker, "anna", "orders")
        for properties in (ANNA, {}):
            letters.publish(b"", properties=properties)
            letters.get_nowait().reject()
        if durable:
            dead.confirm(timeout=PATIENCE)
        route(broker, "anna", "")  # it has none any more
        done = dead.retry()
        assert (done.sent, list(done.stayed.values())) == (1, [1])
        assert "is not decided yet" in next(iter(done.stayed))
        assert set(asked(broker)) == {("orders", b"anna")}
        assert [letter.deliveries for letter in dead.browse()] == [0]
        route(broker, "anna", "orders")
        assert dead.retry().sent == 1


def test_what_is_of_one_queue_only_is_refused(broker: Broker, queue: Queue) -> None:
    route(broker, "anna", WAY)
    route(broker, "berta", "orders")
    with pytest.raises(InvalidArgument, match="named producer"):
        queue.producer("me").publish(b"", properties=ANNA)
    with pytest.raises(InvalidArgument, match="cannot be lent"):
        queue.loan(5, properties=ANNA)
    assert depths(broker) == (0, 0)
    queue.producer("me").publish(b"", properties={"JMSXGroupID": "berta"})
    assert depths(broker) == (1, 0)


def test_the_broker_is_told_of_uses_when_it_has_said_so(broker: Broker, queue: Queue) -> None:
    route(broker, "anna", WAY)
    queue.publish(b"", group="anna")
    assert asked(broker) == []
    broker.queue(ROUTES).publish(b"3600000", key=USES)
    queue.publish(b"", group="anna")
    assert asked(broker) == []
    broker.queue(ROUTES).publish(b"1", key=USES)
    late = threading.Event()
    late.wait(0.01)
    queue.publish(b"", group="anna")
    assert asked(broker) == [("orders", b"anna")]
    assert depths(broker) == (0, 3)


def test_a_route_to_what_is_not_there_is_an_error(broker: Broker, queue: Queue) -> None:
    route(broker, "anna", "$sf.town.gone")
    with pytest.raises(shmbroker.NotFound, match="which is not there"):
        queue.publish(b"", group="anna")


def test_what_comes_from_another_host_is_refused_as_it_cannot_wait(
    broker: Broker, queue: Queue
) -> None:
    records = record(0, chunk(b"1", properties=ANNA)) + record(1, chunk(b"2"))
    with Sink(broker, bytes(16)) as sink:
        sink.to_queue(queue)
        assert sink.pour(records).answers == [INVALID, 0]
    without_routes(broker)
    with Sink(broker, bytes(15) + b"1") as sink:
        sink.to_queue(queue)
        assert sink.pour(records).answers == [1, 2]
