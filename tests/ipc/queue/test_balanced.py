"""Publishing by a balanced set, without a cluster: which ring has the message, and who waits."""

from __future__ import annotations

import threading

import pytest

from shmbroker import Broker, Queue, QueueFull
from shmbroker.ipc._native import ffi, lib

TARGET = 77


def balanced(queue: Queue, *ways: Queue, eligible: int) -> None:
    """The queue itself is bit 0."""
    words = [lib.sb_queue_reference(queue._queue), 0]
    for way in ways:
        words += [lib.sb_queue_reference(way._queue), TARGET]
    given = ffi.new("int64_t[]", words)
    assert lib.sb_queue_balance(queue._queue, given, len(words) // 2, eligible) > 0


@pytest.fixture
def orders(broker: Broker) -> Queue:
    return broker.declare_queue("orders", slots=64)


@pytest.fixture
def way(broker: Broker) -> Queue:
    return broker.declare_queue("way", slots=4)


def bodies(queue: Queue) -> list[bytes]:
    return [each.body for each in queue.browse()]


def test_each_has_its_turn(orders: Queue, way: Queue) -> None:
    balanced(orders, way, eligible=0b11)
    for each in range(6):
        orders.publish(b"%d" % each)
    assert (bodies(orders), bodies(way)) == ([b"0", b"2", b"4"], [b"1", b"3", b"5"])


def test_one_without_room_is_passed_over(orders: Queue, way: Queue) -> None:
    balanced(orders, way, eligible=0b11)
    for each in range(20):
        orders.publish(b"%d" % each, timeout=0)
    assert (len(bodies(orders)), len(bodies(way))) == (16, 4)


def test_if_nobody_else_has_turns_the_publisher_waits_for_room(orders: Queue, way: Queue) -> None:
    balanced(orders, way, eligible=0b10)
    for each in range(4):
        orders.publish(b"%d" % each)
    with pytest.raises(QueueFull):
        orders.publish(b"4", timeout=0)
    with pytest.raises(QueueFull):
        orders.publish(b"4", timeout=0.05, key="k")
    waits = threading.Thread(target=orders.publish, args=(b"4",), kwargs={"timeout": 60})
    waits.start()
    assert way.receive(timeout=0) == b"0"
    waits.join(60)
    assert bodies(way) == [b"1", b"2", b"3", b"4"]
    assert bodies(orders) == []


def test_several_at_once_say_how_many_found_room(orders: Queue, way: Queue) -> None:
    balanced(orders, way, eligible=0b10)
    with pytest.raises(QueueFull) as raised:
        orders.publish_many([b"%d" % each for each in range(6)], timeout=0)
    assert raised.value.published == 4


def test_a_way_that_is_gone_has_no_turn(broker: Broker, orders: Queue, way: Queue) -> None:
    balanced(orders, way, eligible=0b11)
    orders.publish(b"0")
    broker.delete_queue("way", force=True)
    for each in range(1, 6):
        orders.publish(b"%d" % each)
    assert len(bodies(orders)) == 6


def test_without_a_set_everything_stays(orders: Queue, way: Queue) -> None:
    balanced(orders, way, eligible=0b11)
    lib.sb_queue_balance(orders._queue, ffi.NULL, 0, 0)
    for each in range(4):
        orders.publish(b"%d" % each)
    assert (len(bodies(orders)), len(bodies(way))) == (4, 0)


def test_what_a_former_broker_has_left_is_forgotten(
    broker: Broker, orders: Queue, way: Queue
) -> None:
    balanced(orders, way, eligible=0b11)
    lib.sb_balances_forget(broker._connection, 0)
    for each in range(4):
        orders.publish(b"%d" % each)
    assert (len(bodies(orders)), len(bodies(way))) == (4, 0)
    balanced(orders, way, eligible=0b10)
    orders.publish(b"4")
    assert bodies(way) == [b"4"]
