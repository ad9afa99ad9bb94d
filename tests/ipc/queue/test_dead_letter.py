"""What cannot be delivered goes to another queue, and is lost in none."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

import shmbroker
from shmbroker import Broker, Empty, InvalidArgument, Queue, QueueFull, aio
from tests.support.killed import KILLS
from tests.support.overwriting import BROKEN, ODD, overwrite
from tests.support.victim import Confirm, dying


def told(queue: Queue) -> list[tuple[bytes, dict[str, object]]]:
    """Bodies and properties of what is there, the times left out."""
    times = ("dead.first", "dead.last")
    return [
        (each.body, {k: v for k, v in each.properties.items() if k not in times})
        for each in queue.browse()
    ]


def died(reason: str, deliveries: int, origin: str = "orders", count: int = 1) -> dict[str, object]:
    return {
        "dead.origin": origin,
        "dead.reason": reason,
        "dead.count": count,
        "dead.deliveries": deliveries,
    }


def fail_once(queue: Queue) -> None:
    queue.get_nowait().give_back()


def test_after_so_many_deliveries_it_goes_to_the_dead_letter_queue(broker: Broker) -> None:
    orders = broker.declare_queue("orders", max_deliveries=3, dead_letter="dead")
    before = time.time_ns()
    orders.publish(b"one", key="k", properties={"n": 1}, priority=7)
    for delivery in range(3):
        with pytest.raises(ZeroDivisionError), orders.get_nowait() as message:
            assert message.deliveries == delivery
            raise ZeroDivisionError
    with pytest.raises(Empty):
        orders.get_nowait()
    dead = broker.queue("dead")
    assert told(dead) == [(b"one", {"n": 1, **died("deliveries", 3)})]
    (letter,) = dead.browse()
    assert letter.key == "k"
    assert before <= letter.properties["dead.first"] == letter.properties["dead.last"]
    numbers = orders.statistics()
    assert (numbers.dead_lettered, numbers.depth, numbers.acked) == (1, 0, 0)


def test_one_delivery_is_enough_if_it_is_to_be_so(broker: Broker) -> None:
    orders = broker.declare_queue("orders", max_deliveries=1, dead_letter="dead")
    orders.publish(b"x")
    fail_once(orders)
    assert told(broker.queue("dead")) == [(b"x", died("deliveries", 1))]


def test_without_a_limit_it_is_delivered_for_ever(broker: Broker) -> None:
    orders = broker.declare_queue("orders", max_deliveries=None, dead_letter="dead")
    orders.publish(b"x")
    for _ in range(40):
        fail_once(orders)
    assert orders.statistics().depth == 1
    assert orders.statistics().redelivered == 40


def test_ten_deliveries_and_then_dropped_unless_said_otherwise(broker: Broker) -> None:
    orders = broker.declare_queue("orders")
    orders.publish(b"x")
    for _ in range(10):
        fail_once(orders)
    assert (orders.statistics().depth, orders.statistics().dead_lettered) == (0, 1)


def test_what_is_rejected_goes_there_at_once(broker: Broker) -> None:
    orders = broker.declare_queue("orders", dead_letter="dead")
    orders.publish(b"x")
    orders.get_nowait().reject()
    assert told(broker.queue("dead")) == [(b"x", died("rejected", 1))]
    assert orders.statistics().dead_lettered == 1


def test_each_death_is_counted_and_the_first_is_remembered(broker: Broker) -> None:
    orders = broker.declare_queue("orders", max_deliveries=1, dead_letter="second")
    broker.declare_queue("first", slots=8)
    orders.publish(b"x", properties={"dead.note": "not ours to keep", "kept": True})
    fail_once(orders)
    second = broker.queue("second")
    (letter,) = second.browse()
    with second.get_nowait() as message:
        orders.publish(message.body, properties=message.properties)
    fail_once(orders)
    (again,) = second.browse()
    assert told(second) == [(b"x", {"kept": True, **died("deliveries", 1, count=2)})]
    assert again.properties["dead.first"] == letter.properties["dead.first"]
    assert again.properties["dead.last"] > letter.properties["dead.last"]


@pytest.mark.parametrize("broken", BROKEN)
def test_properties_that_are_no_map_are_replaced_by_what_is_said_of_its_death(
    broker: Broker, vhost: str, broken: bytes
) -> None:
    orders = broker.declare_queue("orders", dead_letter="dead")
    orders.publish(b"x", properties=ODD)
    overwrite(vhost, broken)
    orders.get_nowait().reject()
    dead = broker.queue("dead")
    (letter,) = dead.browse()
    assert (letter.body, letter.properties["dead.origin"]) == (b"x", "orders")
    assert dead.retry().sent == 1
    assert orders.get_nowait().properties.keys() == {"dead.count", "dead.first"}


def test_a_batch_is_taken_without_those_that_were_delivered_too_often(broker: Broker) -> None:
    orders = broker.declare_queue("orders", max_deliveries=2, dead_letter="dead")
    with shmbroker.connect(f"shm://{broker.vhost}") as other:
        theirs = other.queue("orders")
        for body in (b"a", b"b", b"c"):
            orders.publish(body)
        held = theirs.get_many(2)
        [each.give_back() for each in held]
        held = theirs.get_many(2)  # and closing revokes both: their second delivery
    (message,) = orders.get_many(8)
    with message:
        assert message.body == b"c"
    dead = [(b"a", died("deliveries", 2)), (b"b", died("deliveries", 2))]
    assert told(broker.queue("dead")) == dead
    orders.publish(b"d")
    assert orders.receive_many(8) == [b"d"]


def test_a_full_dead_letter_queue_keeps_the_message_where_it_is(broker: Broker) -> None:
    orders = broker.declare_queue("orders", slots=4, max_deliveries=1, dead_letter="dead")
    dead = broker.queue("dead")
    for _ in range(dead.slots):
        dead.publish(b"old")
    orders.publish(b"x")
    orders.publish(b"behind")
    fail_once(orders)
    assert orders.statistics().depth == 2
    assert orders.receive(timeout=0) == b"behind"
    with pytest.raises(Empty):
        orders.get(timeout=0.05)  # and it does not look for ever
    assert (orders.statistics().dead_lettered, orders.statistics().set_aside) == (0, 1)
    assert any("its dead do not get to 'dead'" in each.text for each in broker.errors())
    dead.receive()
    assert orders.expire() == 1
    assert told(dead)[-1] == (b"x", died("deliveries", 1))


def test_rejecting_while_the_dead_letter_queue_is_full_is_an_error(broker: Broker) -> None:
    orders = broker.declare_queue("orders", slots=2, dead_letter="dead")
    dead = broker.queue("dead")
    for _ in range(dead.slots):
        dead.publish(b"old")
    orders.publish(b"x")
    with pytest.raises(QueueFull, match="the dead-letter queue of 'orders' is full"):
        orders.get_nowait().reject()
    assert [each.body for each in orders.browse()] == [b"x"]
    dead.receive()
    orders.get_nowait().reject()
    assert dead.statistics().depth == 2


def test_a_dead_letter_queue_that_was_deleted(broker: Broker) -> None:
    orders = broker.declare_queue("orders", dead_letter="dead")
    broker.delete_queue("dead")
    orders.publish(b"x")
    orders.get_nowait().reject()
    assert (orders.statistics().depth, orders.statistics().dead_lettered) == (0, 1)
    assert any("'dead', which is no queue" in each.text for each in broker.errors())
    dead = broker.declare_queue("dead")
    orders.publish(b"y")
    orders.get_nowait().reject()
    assert told(dead) == [(b"y", died("rejected", 1))]


def test_loops_are_refused(broker: Broker) -> None:
    with pytest.raises(InvalidArgument, match="dead_letter 'a' of queue 'a' leads back to it"):
        broker.declare_queue("a", dead_letter="a")
    broker.declare_queue("b", dead_letter="c")
    broker.declare_queue("a", dead_letter="b")
    broker.delete_queue("c")
    with pytest.raises(InvalidArgument, match="dead_letter 'a' of queue 'c' leads back to it"):
        broker.declare_queue("c", dead_letter="a")
    assert "c" not in [queue.name for queue in broker.queues()]


def test_a_loop_of_a_dead_letter_and_an_expiry_queue_is_a_retry_with_delay(broker: Broker) -> None:
    """Both full of what belongs to the other: neither waits for the other without end."""
    later = broker.declare_queue("later", slots=2, ttl=0.001, expiry_queue="work")
    broker.delete_queue("work")
    work = broker.declare_queue("work", slots=2, max_deliveries=1, dead_letter="later")
    work.publish(b"x")
    fail_once(work)
    message = work_after(later, work)
    assert message.body == b"x"
    assert message.properties["dead.count"] == 2
    message.ack()
    for queue in (later, work, later, work):
        queue.publish(b"full", ttl=0.001)
    with pytest.raises(QueueFull):
        [later.publish(b"more", timeout=0.05) for _ in range(9)]


def work_after(later: Queue, work: Queue) -> shmbroker.Message:
    while not later.expire():
        pass
    return work.get_nowait()


@pytest.mark.parametrize("wrong", [0, -1, True, 2.5, "3"])
def test_max_deliveries_is_a_number(broker: Broker, wrong: object) -> None:
    with pytest.raises(InvalidArgument, match="max_deliveries is a positive number or None, not"):
        broker.declare_queue("orders", max_deliveries=wrong)  # type: ignore[arg-type]


def test_what_a_queue_cannot_be_declared_as(broker: Broker) -> None:
    with pytest.raises(InvalidArgument, match="max_deliveries is a number from 0 to 14, not 15"):
        broker.declare_queue("orders", max_deliveries=15)
    with pytest.raises(InvalidArgument, match=r"no setting 'dead_leter'; there are .*dead_letter"):
        broker.declare_queue("orders", dead_leter="dead")  # type: ignore[call-arg]
    with pytest.raises(shmbroker.InvalidName, match="contains no '/'"):
        broker.declare_queue("orders", dead_letter="a/b")
    assert broker.queues() == []


def test_declaring_it_otherwise(broker: Broker) -> None:
    broker.declare_queue("orders", max_deliveries=3, dead_letter="dead")
    broker.declare_queue("orders", max_deliveries=3, dead_letter="dead")
    for other in ({}, {"max_deliveries": 3}):  # what is left out is not asked
        assert broker.declare_queue("orders", **other).name == "orders"  # type: ignore[arg-type]
    for other in ({"max_deliveries": 4, "dead_letter": "dead"}, {"max_deliveries": 10}):
        with pytest.raises(shmbroker.DeclaredDifferently, match="'orders' exists with other sett"):
            broker.declare_queue("orders", **other)  # type: ignore[arg-type]


def test_explain(broker: Broker) -> None:
    orders = broker.declare_queue("orders", max_deliveries=3, dead_letter="dead")
    explained = orders.explain()
    assert (explained["max_deliveries"].value, explained["max_deliveries"].source) == (
        3,
        "declared",
    )
    assert (explained["ttl"].value, explained["ttl"].source) == (None, "default")
    assert broker.queue("dead").explain()["max_deliveries"].value is None


def test_asyncio(vhost: str) -> None:
    async def session() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            orders = await broker.declare_queue("orders", max_deliveries=2, dead_letter="dead")
            await orders.publish(b"x")
            for _ in range(2):
                (await orders.get(timeout=1)).give_back()
            with pytest.raises(Empty):
                await orders.get(timeout=0.01)
            dead = await broker.queue("dead")
            async with await dead.get(timeout=1) as letter:
                assert letter.properties["dead.reason"] == "deliveries"
            assert (await orders.explain())["max_deliveries"].value == 2

    asyncio.run(session())


def test_asyncio_and_a_full_dead_letter_queue(vhost: str) -> None:
    async def session() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            orders = await broker.declare_queue(
                "orders", slots=2, max_deliveries=1, dead_letter="dead"
            )
            dead = await broker.queue("dead")
            await dead.publish_many([b"old", b"old"])
            await orders.publish(b"x")
            (await orders.get(timeout=1)).give_back()
            async with asyncio.timeout(10):
                with pytest.raises(Empty):
                    await orders.get(timeout=0.05)
            assert (await orders.statistics()).depth == 1

    asyncio.run(session())


def test_a_delivery_to_one_who_is_killed_counts(broker: Broker, tmp_path: Path, vhost: str) -> None:
    orders = broker.declare_queue("orders", max_deliveries=2, dead_letter="dead")
    orders.publish(b"poison")
    has_confirmed = broker.declare_queue("confirmed")

    def work(theirs: Broker, confirm: Confirm) -> None:
        message = theirs.queue("orders").get()
        confirm(message.deliveries)
        theirs.queue("confirmed").publish(b"")
        theirs.queue("dead").get()  # for ever: the message stays in its hand

    for delivery in range(2):
        with dying(vhost, work, tmp_path, Random(1)) as confirmed:
            has_confirmed.receive(timeout=10)
        assert confirmed == [delivery]
        broker.repair()
    with pytest.raises(Empty):
        orders.get_nowait()
    assert told(broker.queue("dead")) == [(b"poison", died("deliveries", 2))]


def test_nothing_is_lost_whenever_one_is_killed(broker: Broker, tmp_path: Path, vhost: str) -> None:
    """A letter may be there twice: both tell where they come from."""
    orders = broker.declare_queue("orders", slots=64, max_deliveries=2, dead_letter="dead")
    dead = broker.queue("dead")
    random = Random(5)

    def work(theirs: Broker, confirm: Confirm) -> None:
        queue = theirs.queue("orders")
        for turn in range(1 << 30):
            try:
                message = queue.get(timeout=1)
            except Empty:
                return
            message.reject() if turn % 3 == 0 else message.give_back()

    twice = 0
    for _ in range(KILLS):
        bodies = [b"%d" % number for number in range(48)]
        orders.publish_many(bodies)
        with dying(vhost, work, tmp_path, random):
            pass
        broker.repair()
        left = [message.body for message in orders.consume(timeout=0)]
        letters = list(dead.browse())
        assert all(letter.properties["dead.origin"] == "orders" for letter in letters)
        there = Counter(left) + Counter(letter.body for letter in letters)
        assert set(there) == set(bodies)
        assert max(there.values()) <= 2
        twice += sum(there.values()) - len(bodies)
        dead.purge()
    assert twice <= KILLS  # one that was in its hand


def test_none_is_dropped_whose_queue_cannot_be_opened_now(broker: Broker, vhost: str) -> None:
    broker.declare_queue("orders", dead_letter="dead").publish(b"a")
    with shmbroker.connect(f"shm://{vhost}") as other:
        message = other.queue("orders").get(timeout=0)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        free = os.dup(0)  # the least that is free: all below are taken
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
        try:
            with pytest.raises(QueueFull):
                message.reject()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        other.queue("orders").get(timeout=0).reject()
    assert told(broker.queue("dead")) == [(b"a", died("rejected", 2))]
