"""What cannot go to its dead-letter or expiry queue is passed over, and goes there when it can."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from shmbroker import Broker, Empty, Queue
from tests.support.killed import KILLS
from tests.support.victim import Confirm, dying

PATIENCE = 60.0


@pytest.fixture
def dead(broker: Broker) -> Queue:
    """Full, until somebody takes from it."""
    queue = broker.declare_queue("dead", slots=4)
    queue.publish_many([b"old"] * 4)
    return queue


def bodies(queue: Queue) -> list[bytes]:
    return [each.body for each in queue.browse()]


def poison(queue: Queue, *names: bytes, **options: Any) -> None:
    """Messages that have been delivered as often as they may be, once each."""
    for name in names:
        queue.publish(name, **options)
    for _ in names:
        queue.get(timeout=0).give_back()


def get(queue: Queue) -> bytes:
    with queue.get(timeout=0) as message:
        return message.body


def get_many(queue: Queue) -> bytes:
    (message,) = queue.get_many(1, timeout=0)
    with message:
        return message.body


def receive(queue: Queue) -> bytes:
    return queue.receive(timeout=0)


def receive_many(queue: Queue) -> bytes:
    (body,) = queue.receive_many(1, timeout=0)
    return body


def select(queue: Queue) -> bytes:
    with queue.get("$priority >= 0", timeout=0) as message:
        return message.body


@pytest.mark.parametrize("take", [get, get_many, receive, receive_many, select])
@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        ({"priorities": True}, {"priority": 4}),
        ({"groups": True}, {"group": "g"}),
        ({"single_active": True}, {}),
        ({"slow_consumer_threshold": 1e9}, {}),
        ({"last_value": True, "slots": 32}, {"key": "k"}),
    ],
    ids=lambda given: ",".join(given) or "plain",
)
def test_good_messages_behind_it_are_delivered_in_order(
    broker: Broker,
    dead: Queue,
    take: Callable[[Queue], bytes],
    settings: dict[str, Any],
    options: dict[str, Any],
) -> None:
    orders = broker.declare_queue("orders", max_deliveries=1, dead_letter="dead", **settings)
    poison(orders, b"poison", **options)
    for body in (b"a", b"b"):  # not another value of the same key, which would replace it
        orders.publish(body, **{**options, **({"key": body.decode()} if "key" in options else {})})
    assert [take(orders), take(orders)] == [b"a", b"b"]
    assert bodies(orders) == [b"poison"]
    assert (orders.statistics().depth, orders.statistics().set_aside) == (1, 1)
    assert dead.receive(timeout=0) == b"old"
    assert orders.expire() == 1
    assert bodies(dead) == [b"old"] * 3 + [b"poison"]
    letter = list(dead.browse())[-1]
    assert (letter.properties["dead.reason"], letter.properties["dead.deliveries"]) == (
        "deliveries",
        1,
    )
    assert (orders.statistics().depth, orders.statistics().set_aside) == (0, 0)
    assert orders.statistics().dead_lettered == 1


def test_room_is_noticed_by_one_who_waits_for_something_else(broker: Broker, dead: Queue) -> None:
    orders = broker.declare_queue("orders", max_deliveries=1, dead_letter="dead")
    poison(orders, b"poison")
    got: list[bytes] = []
    waits = threading.Thread(target=lambda: got.append(orders.receive(timeout=3 * PATIENCE)))
    waits.start()
    assert [dead.receive(timeout=0) for _ in range(4)] == [b"old"] * 4
    assert dead.receive(timeout=PATIENCE) == b"poison"
    orders.publish(b"end")
    waits.join(PATIENCE)
    assert got == [b"end"]


def test_room_is_noticed_by_one_who_only_looks(broker: Broker, dead: Queue) -> None:
    orders = broker.declare_queue("orders", max_deliveries=1, dead_letter="dead")
    poison(orders, b"poison")
    dead.purge()
    while not bodies(dead):
        with pytest.raises(Empty):
            orders.receive(timeout=0)
    assert bodies(dead) == [b"poison"]


def test_what_is_expired_and_has_nowhere_to_go_stops_nobody(broker: Broker) -> None:
    quotes = broker.declare_queue("quotes", expiry_queue="late")
    late = broker.queue("late")
    late.publish_many([b"old"] * late.slots)
    for body in (b"1", b"2"):
        quotes.publish(body, ttl=1e-9)
    quotes.publish(b"3")
    assert quotes.receive(timeout=0) == b"3"
    assert bodies(quotes) == [b"1", b"2"]
    assert quotes.statistics().set_aside == 2
    assert quotes.expire() == 0
    assert {each.deliveries for each in quotes.browse()} == {0}  # to try is no delivery
    late.purge()
    assert quotes.expire() == 2
    assert bodies(late) == [b"1", b"2"]


def test_thousands_stop_nobody_either(broker: Broker, dead: Queue) -> None:
    many = [b"%d" % number for number in range(1000)]
    orders = broker.declare_queue("orders", slots=2048, max_deliveries=1, dead_letter="dead")
    poison(orders, *many)
    orders.publish(b"good")
    assert orders.receive(timeout=0) == b"good"
    assert orders.statistics().set_aside == 1000
    letters: list[bytes] = []
    dead.purge()
    while len(letters) < len(many):
        orders.expire()
        letters += dead.receive_many(timeout=0)
    assert sorted(letters) == sorted(many)
    with pytest.raises(Empty):
        dead.receive(timeout=0)


def test_one_that_never_fits_does_not_hold_up_the_others(broker: Broker) -> None:
    dead = broker.declare_queue("dead", slots=64, max_bytes=4096, when_full="fail")
    orders = broker.declare_queue("orders", max_deliveries=1, dead_letter="dead")
    large = [bytes([number]) * 5000 for number in range(20)]
    poison(orders, *large, b"small")
    assert bodies(dead) == [b"small"]
    dead.publish_many([b"x" * 700] * 5)
    poison(orders, b"y" * 800)
    assert orders.statistics().set_aside == 21
    dead.purge()
    while not bodies(dead):
        orders.expire()
    assert bodies(dead) == [b"y" * 800]
    assert orders.statistics().set_aside == 20


def test_given_back_below_it_comes_first_again(broker: Broker, dead: Queue) -> None:
    """take is lowered below what is set aside, and finds it once more."""
    orders = broker.declare_queue("orders", max_deliveries=2, dead_letter="dead")
    orders.publish_many([b"a", b"poison", b"b"])
    first = orders.get(timeout=0)
    for _ in range(2):
        orders.get(timeout=0).give_back()
    assert orders.statistics().set_aside == 1
    first.give_back()
    assert [orders.receive(timeout=0) for _ in range(2)] == [b"a", b"b"]
    assert (bodies(orders), orders.statistics().set_aside) == ([b"poison"], 1)
    with pytest.raises(Empty):
        orders.receive(timeout=0.15)  # a repair of who waits does not bring it back
    assert orders.statistics().set_aside == 1
    (letter,) = orders.browse()
    assert letter.deliveries == 2


def test_it_can_be_moved_and_purged(broker: Broker, dead: Queue) -> None:
    orders = broker.declare_queue("orders", max_deliveries=1, dead_letter="dead")
    other = broker.declare_queue("other")
    poison(orders, b"1", b"2")
    assert (orders.move_to(other, 1), bodies(other)) == (1, [b"1"])
    assert orders.purge() == 1
    assert (orders.statistics().depth, orders.statistics().set_aside) == (0, 0)


def test_whoever_is_killed_loses_and_delivers_none_of_them(
    broker: Broker, tmp_path: Path, vhost: str, dead: Queue
) -> None:
    orders = broker.declare_queue("orders", slots=64, max_deliveries=1, dead_letter="dead")
    random = Random(7)

    def work(theirs: Broker, confirm: Confirm) -> None:
        queue = theirs.queue("orders")
        while True:
            try:
                queue.get(timeout=0).give_back()
            except Empty:
                queue.expire()

    for _ in range(KILLS):
        poisons = [b"%d" % number for number in range(48)]
        orders.publish_many(poisons)
        with dying(vhost, work, tmp_path, random):
            pass
        broker.repair()
        with suppress(Empty):
            while True:
                orders.get(timeout=0).give_back()
        assert sorted(bodies(orders)) == sorted(poisons)
        assert orders.statistics().set_aside == 48
        orders.purge()
    assert bodies(dead) == [b"old"] * 4
