"""What was not dealt with is delivered again after a delay, whoever had it and however it ended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from struct import Struct

import pytest

import shmbroker
from shmbroker import Broker, Empty, InvalidArgument, Message
from shmbroker.perf.machine.process import Process
from tests.support.killed import KILLS
from tests.support.victim import Confirm, dying

DELAY = 0.02
LATER = 0.3
"""Long enough to do something before."""
WEEK = 7 * 86400.0
PATIENCE = 60.0
NUMBER = Struct("<q")


def give_back(broker: Broker, message: Message) -> None:
    message.give_back()


def roll_back(broker: Broker, message: Message) -> None:
    with broker.transaction() as transaction:
        transaction.ack(message)
        transaction.rollback()


either = pytest.mark.parametrize("ends", [give_back, roll_back])
Ends = Callable[[Broker, Message], None]


def test_it_comes_back_after_the_delay(broker: Broker) -> None:
    orders = broker.declare_queue("orders", redelivery_delay=LATER)
    orders.publish(b"x", key="k", properties={"n": 1}, priority=2, ttl=60)
    orders.publish(b"behind")
    message = orders.get(timeout=0)
    begin = time.monotonic()
    message.give_back()
    with orders.get(timeout=0) as other:
        assert other.body == b"behind"
    with pytest.raises(Empty):
        orders.get(timeout=0)
    with orders.get(timeout=PATIENCE) as again:
        assert time.monotonic() - begin >= LATER
        assert (again.body, again.key, again.properties) == (b"x", "k", {"n": 1})
        assert again.deliveries == 1
        (copied,) = orders.browse()
        assert (copied.priority, copied.deliveries) == (2, 1)
        assert 0 < copied.expires_ns < time.monotonic_ns() + 60e9
    numbers = orders.statistics()
    assert (numbers.acked, numbers.redelivered, numbers.depth, numbers.scheduled) == (2, 1, 0, 0)


@either
def test_longer_each_time(broker: Broker, ends: Ends) -> None:
    orders = broker.declare_queue("orders", redelivery_delay=0.001, redelivery_multiplier=1000)
    orders.publish(b"x")
    for deliveries in range(3):
        message = orders.get(timeout=PATIENCE)
        assert message.deliveries == deliveries
        ends(broker, message)
    (waiting,) = orders.scheduled()
    assert 990 < waiting.deliver_at.timestamp() - time.time() <= 1000.001


def test_but_not_for_ever(broker: Broker) -> None:
    orders = broker.declare_queue(
        "orders", redelivery_delay=0.001, redelivery_multiplier=1000, max_redelivery_delay=0.002
    )
    orders.publish(b"x")
    for _ in range(5):
        orders.get(timeout=PATIENCE).give_back()


def test_it_is_listed_and_can_be_cancelled(broker: Broker) -> None:
    orders = broker.declare_queue("orders", redelivery_delay=WEEK)
    orders.publish(b"x")
    orders.get(timeout=0).give_back()
    (waiting,) = orders.scheduled()
    assert (waiting.body, waiting.deliveries) == (b"x", 1)
    assert orders.cancel_scheduled(waiting.id)


@either
def test_after_so_many_deliveries_it_is_dead(broker: Broker, ends: Ends) -> None:
    orders = broker.declare_queue(
        "orders", redelivery_delay=0.001, max_deliveries=3, dead_letter="dead"
    )
    orders.publish(b"x")
    for deliveries in range(3):
        message = orders.get(timeout=PATIENCE)
        assert message.deliveries == deliveries
        ends(broker, message)
    with broker.queue("dead").get(timeout=PATIENCE) as letter:
        assert letter.properties["dead.deliveries"] == 3
        assert letter.deliveries == 0
    assert orders.scheduled() == []


@pytest.mark.parametrize("repairs", [False, True])
def test_what_expires_meanwhile_is_expired(broker: Broker, tmp_path: Path, repairs: bool) -> None:
    orders = broker.declare_queue("orders", redelivery_delay=WEEK, expiry_queue="late")
    orders.publish(b"x", ttl=LATER)
    orders.get(timeout=0).give_back()
    if repairs:

        def schedule() -> int:
            with shmbroker.connect(f"shm://{broker.vhost}") as mine:
                mine.queue("orders").publish(b"later", deliver_after=WEEK)
                os._exit(0)

        assert Process(schedule, tmp_path / "errors").has_ended(PATIENCE)
        time.sleep(LATER)
        broker.repair_for(timeout=0)
    late = broker.queue("late")
    ends_at = time.monotonic() + PATIENCE
    while late.statistics().depth == 0 and time.monotonic() < ends_at:
        with pytest.raises(Empty):
            orders.get(timeout=0.001)
    with late.get(timeout=0) as letter:
        assert letter.properties["dead.reason"] == "expired"


def test_a_rollback_delays_too(broker: Broker) -> None:
    orders = broker.declare_queue("orders", redelivery_delay=LATER)
    orders.publish(b"x")
    with broker.transaction() as tx:
        tx.ack(orders.get())
        tx.rollback()
    assert len(orders.scheduled()) == 1
    assert orders.receive(timeout=PATIENCE) == b"x"


def test_by_pattern(broker: Broker) -> None:
    broker.settings("slow.#", redelivery_delay=1.0, redelivery_multiplier=3.0)
    queue = broker.declare_queue("slow.one", max_redelivery_delay=60.0)
    found = queue.explain()
    assert (found["redelivery_delay"].value, found["redelivery_delay"].source) == (
        1.0,
        "pattern 'slow.#'",
    )
    assert found["redelivery_multiplier"].value == 3.0
    assert found["max_redelivery_delay"].source == "declared"
    assert found["max_scheduled"].source == "default"


@pytest.mark.parametrize(
    "bad",
    [
        {"redelivery_delay": -1},
        {"redelivery_delay": float("nan")},
        {"redelivery_delay": "1"},
        {"redelivery_delay": 1.0, "redelivery_multiplier": 0.5},
        {"redelivery_multiplier": float("nan")},
        {"redelivery_multiplier": 1e9},
        {"redelivery_multiplier": True},
        {"redelivery_delay": 2.0, "max_redelivery_delay": 1.0},
        {"max_scheduled": 0},
        {"max_scheduled": 1 << 40},
    ],
)
def test_settings_that_make_no_sense(broker: Broker, bad: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        broker.declare_queue("orders", **bad)  # type: ignore[arg-type]


def test_without_room_in_the_schedule_it_comes_back_at_once(broker: Broker) -> None:
    orders = broker.declare_queue("orders", redelivery_delay=WEEK, max_scheduled=1)
    orders.publish(b"later", deliver_after=WEEK)
    orders.publish(b"x")
    orders.get(timeout=0).give_back()
    with orders.get(timeout=0) as again:
        assert (again.body, again.deliveries) == (b"x", 1)
    assert any("redelivery is at once" in each.text for each in broker.errors())


def test_from_a_consumer_that_died(vhost: str, broker: Broker, tmp_path: Path) -> None:
    orders = broker.declare_queue("orders", redelivery_delay=DELAY)
    orders.publish(b"x")

    def take() -> int:
        with shmbroker.connect(f"shm://{vhost}") as mine:
            message = mine.queue("orders").get()
            (tmp_path / "taken").touch()
            time.sleep(PATIENCE)
            message.ack()
        return 0

    consumer = Process(take, tmp_path / "errors")
    while not (tmp_path / "taken").exists():
        assert not consumer.has_ended(0.001)
    consumer.kill()
    begin = time.monotonic()
    with orders.get(timeout=PATIENCE) as again:
        assert time.monotonic() - begin >= DELAY
        assert (again.body, again.deliveries) == (b"x", 1)


def test_none_is_lost_or_doubled_whoever_is_killed(
    vhost: str, broker: Broker, tmp_path: Path
) -> None:
    """They are given back again and again, and go to and fro, until one is killed in between."""
    orders = broker.declare_queue("orders", slots=64, redelivery_delay=0.0005, max_deliveries=None)
    for number in range(40):
        orders.publish(NUMBER.pack(number))

    def work(mine: Broker, confirm: Confirm) -> None:
        queue = mine.queue("orders")
        while True:
            with pytest.raises(ZeroDivisionError), queue.get(timeout=PATIENCE) as message:
                confirm(NUMBER.unpack(message.body)[0])
                raise ZeroDivisionError

    random, given_back = Random(3), 0
    for _ in range(KILLS):
        with dying(vhost, work, tmp_path, random) as confirmed:
            pass
        given_back += len(confirmed)
        broker.repair()
        found: list[int] = []
        ends_at = time.monotonic() + PATIENCE
        while len(found) < 40:
            assert time.monotonic() < ends_at, sorted(set(range(40)) - set(found))
            try:
                bodies = orders.receive_many(64, timeout=0.01)
            except Empty:
                continue
            found += [NUMBER.unpack(body)[0] for body in bodies]
        assert sorted(found) == list(range(40))
        assert orders.statistics().scheduled == orders.statistics().depth == 0
        for number in found:
            orders.publish(NUMBER.pack(number))
    assert given_back > KILLS, "they had no time to do anything"
