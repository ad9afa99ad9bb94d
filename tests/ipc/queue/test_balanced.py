"""Publishing by a balanced set, without a cluster: which ring has the message, and who waits."""

from __future__ import annotations

import threading

import pytest

from shmbroker import Broker, Queue, QueueFull, Selector
from shmbroker.core.codes import INVALID
from shmbroker.core.layout import BALANCE_SELECTOR_SHIFT, BALANCE_SELECTORS_BYTES
from shmbroker.ipc._native import ffi, lib

TARGET = 77


def entry(member: int, program: bytes) -> bytes:
    word = len(program) << BALANCE_SELECTOR_SHIFT | member
    return word.to_bytes(8, "little") + program + bytes(-len(program) % 8)


def balanced(
    queue: Queue, *ways: Queue, eligible: int, selectors: tuple[tuple[int, str], ...] = ()
) -> None:
    """The queue itself is bit 0.  `selectors`: each of the member with this bit."""
    words = [lib.sb_queue_reference(queue._queue), 0]
    for way in ways:
        words += [lib.sb_queue_reference(way._queue), TARGET]
    given = ffi.new("int64_t[]", words)
    programs = b"".join(entry(member, Selector(text).program) for member, text in selectors)
    assert gives(queue, given, len(words) // 2, eligible, programs) > 0


def gives(queue: Queue, members: object, count: int, eligible: int, programs: bytes) -> int:
    code: int = lib.sb_queue_balance(
        queue._queue, members, count, eligible, programs, len(programs)
    )
    return code


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
    lib.sb_queue_balance(orders._queue, ffi.NULL, 0, 0, ffi.NULL, 0)
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


# --- selectors ------------------------------------------------------------------------------------


def publish(queue: Queue, *numbers: int) -> None:
    for each in numbers:
        queue.publish(b"%d" % each, properties={"n": each})


def test_each_goes_to_one_whose_selector_takes_it(orders: Queue, way: Queue) -> None:
    balanced(orders, way, eligible=0, selectors=((0, "n < 3"), (1, "n > 6"), (1, "n = 4")))
    publish(orders, *range(10))
    assert bodies(way) == [b"4", b"7", b"8", b"9"]
    assert bodies(orders) == [b"0", b"1", b"2", b"3", b"5", b"6"]  # the rest stays


def test_those_that_take_it_have_turns(orders: Queue, way: Queue) -> None:
    """The first takes everything."""
    balanced(orders, way, eligible=0b01, selectors=((1, "n > 2"),))
    publish(orders, *range(7))
    assert len(bodies(way)) == 2
    assert {b"0", b"1", b"2"} <= set(bodies(orders))


def test_a_selector_sees_all_of_a_message(orders: Queue, way: Queue) -> None:
    text = "$key = 'k' AND $size = 3 AND JMSPriority = 7 AND JMSExpiration > JMSTimestamp"
    balanced(orders, way, eligible=0, selectors=((1, text),))
    orders.publish(b"abc", key="k", priority=7, ttl=60)
    orders.publish(b"abc", key="k", priority=7)
    orders.publish(b"abc", key="k", priority=6, ttl=60)
    orders.publish(b"ab", key="k", priority=7, ttl=60)
    orders.publish(b"abc", key="l", priority=7, ttl=60)
    assert (len(bodies(way)), len(bodies(orders))) == (1, 4)


def test_without_selectors_again_each_has_its_turn(orders: Queue, way: Queue) -> None:
    balanced(orders, way, eligible=0, selectors=((1, "n > 6"),))
    publish(orders, 1)
    balanced(orders, way, eligible=0b11)
    publish(orders, 2, 3)
    assert len(bodies(way)) == 1


def test_what_is_no_program_takes_nothing(orders: Queue, way: Queue) -> None:
    words = [lib.sb_queue_reference(each._queue) for each in (orders, way)]
    given = ffi.new("int64_t[]", [words[0], 0, words[1], TARGET])
    good = entry(1, Selector("TRUE = TRUE").program)
    for nonsense in (entry(1, b"nonsense"), entry(70, good[8:]), (1 << 40).to_bytes(8, "little")):
        assert gives(orders, given, 2, 0, nonsense) > 0
        publish(orders, 1)
        assert bodies(way) == []
    assert gives(orders, given, 2, 0, good) > 0
    publish(orders, 2)
    assert bodies(way) == [b"2"]
    assert gives(orders, given, 2, 0, bytes(BALANCE_SELECTORS_BYTES + 8)) == INVALID
    assert gives(orders, given, 2, 0, good + b"1") == INVALID


def test_members_change_while_many_publish(orders: Queue, broker: Broker) -> None:
    """What a selector of one version says is not taken for that of a member of another."""
    ways = [broker.declare_queue(f"way{each}", slots=4096) for each in range(2)]
    done = threading.Event()

    def change() -> None:
        while not done.is_set():
            balanced(orders, *ways, eligible=0, selectors=((1, "n < 5"), (2, "n > 5")))
            balanced(orders, *reversed(ways), eligible=0, selectors=((2, "n < 5"), (1, "n > 5")))

    changes = threading.Thread(target=change)
    changes.start()
    for each in range(3000):
        orders.publish(b"%d" % (each % 11), properties={"n": each % 11})
        while len(orders):
            orders.receive(timeout=0)
    done.set()
    changes.join()
    assert {int(each) for each in bodies(ways[0])} <= set(range(5))
    assert {int(each) for each in bodies(ways[1])} <= set(range(6, 11))
    assert min(len(bodies(each)) for each in ways) > 0
