"""Priorities: the oldest message of the highest level is taken, whatever was published before."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from random import Random

import pytest

import shmbroker
from shmbroker.core.layout import LEVELS
from tests.support.killed import KILLS
from tests.support.victim import Confirm, dying


@pytest.fixture
def queue(broker: shmbroker.Broker) -> shmbroker.Queue:
    return broker.declare_queue("q", slots=64, priorities=True)


def publish(queue: shmbroker.Queue, *priorities: int | None) -> None:
    number = count()
    for priority in priorities:
        queue.publish(f"{priority} {next(number)}".encode(), priority=priority)


def bodies(queue: shmbroker.Queue) -> list[str]:
    return [body.decode() for body in queue.receive_many(timeout=0)]


def test_the_highest_goes_first_and_each_level_in_order(queue: shmbroker.Queue) -> None:
    publish(queue, 4, 0, 9, 4, 9, 0)
    assert bodies(queue) == ["9 2", "9 4", "4 0", "4 3", "0 1", "0 5"]


@pytest.mark.parametrize("how", ["get", "get_many", "receive", "receive_many", "consume"])
def test_every_way_of_taking_has_this_order(queue: shmbroker.Queue, how: str) -> None:
    publish(queue, 1, 8, 3)
    if how == "receive_many":
        found = queue.receive_many(timeout=0)
    elif how == "receive":
        found = [queue.receive(timeout=0) for _ in range(3)]
    elif how == "get":
        held = [queue.get(timeout=0) for _ in range(3)]  # one that is dropped is given back
        found = [message.body for message in held]
    elif how == "get_many":
        found = [message.body for message in queue.get_many(3, timeout=0)]
    else:
        found = [message.body for message in queue.consume(timeout=0)]
    assert found == [b"8 1", b"3 2", b"1 0"]


def test_without_a_priority_it_is_4(queue: shmbroker.Queue) -> None:
    publish(queue, 3, None, 5)
    assert bodies(queue) == ["5 2", "None 1", "3 0"]


def test_redelivery_keeps_its_place(queue: shmbroker.Queue) -> None:
    publish(queue, 5, 5, 7, 5)
    first = queue.get(timeout=0)
    second = queue.get(timeout=0)
    third = queue.get(timeout=0)
    assert [each.body for each in (first, second, third)] == [b"7 2", b"5 0", b"5 1"]
    second.give_back()
    first.give_back()
    assert bodies(queue) == ["7 2", "5 0", "5 3"]
    third.ack()


def test_what_comes_later_overtakes(queue: shmbroker.Queue) -> None:
    publish(queue, 1, 1)
    assert queue.receive(timeout=0) == b"1 0"
    publish(queue, 9)
    assert bodies(queue) == ["9 0", "1 1"]


def test_several_laps(queue: shmbroker.Queue) -> None:
    for lap in range(50):
        publish(queue, *range(10))
        assert bodies(queue) == [f"{level} {level}" for level in reversed(range(10))], lap


def test_fewer_levels(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=8, priorities=2)
    publish(queue, 0, 9, 1, 0)
    assert bodies(queue) == ["9 1", "1 2", "0 0", "0 3"]


def test_without_priorities_the_order_is_that_of_publishing(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q")
    publish(queue, 1, 9, 4)
    assert bodies(queue) == ["1 0", "9 1", "4 2"]


def test_nothing_is_taken_while_it_is_paused(queue: shmbroker.Queue) -> None:
    publish(queue, 1, 9)
    queue.pause()
    with pytest.raises(shmbroker.Empty):
        queue.get(timeout=0)
    queue.resume()
    assert bodies(queue) == ["9 1", "1 0"]


def test_statistics_show_who_starves(queue: shmbroker.Queue) -> None:
    publish(queue, 0, 9, 0)
    levels = {level.priority: level for level in queue.statistics().levels}
    assert [level.priority for level in queue.statistics().levels] == list(reversed(range(LEVELS)))
    assert levels[0].waiting == 2
    assert levels[9].waiting == 1
    assert levels[4].waiting == levels[4].oldest_published_at == 0
    assert 0 < levels[0].oldest_published_at <= levels[9].oldest_published_at


def test_a_loan_has_a_priority(queue: shmbroker.Queue) -> None:
    publish(queue, 1)
    with queue.loan(4, priority=6) as loan:
        loan.view[:] = b"loan"
    assert bodies(queue) == ["loan", "1 0"]


@pytest.mark.parametrize("priority", [-1, 10, 1.5, True, "high"])
def test_what_is_no_priority(queue: shmbroker.Queue, priority: object) -> None:
    with pytest.raises(shmbroker.InvalidArgument, match="a priority is a number from 0 to 9"):
        queue.publish(b"", priority=priority)  # type: ignore[arg-type]


@pytest.mark.parametrize("levels", [-1, 11, "all"])
def test_what_is_no_number_of_levels(broker: shmbroker.Broker, levels: object) -> None:
    with pytest.raises(shmbroker.InvalidArgument, match="priorities is True, or a number"):
        broker.declare_queue("p", priorities=levels)  # type: ignore[arg-type]


def test_the_order_stays_whenever_one_is_killed(
    broker: shmbroker.Broker, vhost: str, tmp_path: Path
) -> None:
    queue = broker.declare_queue("orders", slots=64, priorities=True, max_deliveries=None)
    random = Random(7)

    def work(theirs: shmbroker.Broker, confirm: Confirm) -> None:
        orders = theirs.queue("orders")
        for number in range(1 << 20):
            if orders.statistics().depth < 16:
                orders.publish(b"%d" % number, priority=number * 7 % 10)
                confirm(number)
            with orders.get() as highest:
                if number % 3:
                    highest.give_back()
                else:
                    confirm(-1 - int(highest.body))  # may be taken once more: it comes before ack

    for _ in range(KILLS):
        with dying(vhost, work, tmp_path, random) as confirmed:
            pass
        broker.repair()
        order = []
        for message in queue.consume(timeout=0):
            order.append((-(int(message.body) * 7 % 10), message.position, int(message.body)))
        assert order == sorted(order)
        published = {number for number in confirmed if number >= 0}
        taken = {-1 - number for number in confirmed if number < 0}
        assert published - taken <= {number for _, _, number in order}
        assert queue.statistics().depth == 0
