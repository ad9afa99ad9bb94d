"""The sleeper tells once, through an eventfd, of what is worth trying, unless it is forgotten."""

from __future__ import annotations

import gc
import os
import select
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.netbridge.carrier.sleeper import ANY, ROOM, RUNG_MAX, Sleeper

PATIENCE = 60


class Rung:
    """Its sleeper, and what that has told of."""

    def __init__(self) -> None:
        self.event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.sleeper = Sleeper(self.event)
        self.told: list[Any] = []
        self._poll = select.poll()
        self._poll.register(self.event, select.POLLIN)

    def watch(self, name: object, queue: shmbroker.Queue, position: int = 0) -> int:
        return self.sleeper.watch(queue._queue, position, ANY, lambda: self.told.append(name))

    def until(self, done: Callable[[], bool]) -> None:
        """As the network thread does it."""
        while not done():
            assert self._poll.poll(PATIENCE * 1000), "nothing was told"
            with suppress(BlockingIOError):
                os.eventfd_read(self.event)
            self.sleeper.ring()

    def close(self) -> None:
        self.sleeper.close()
        os.close(self.event)


@pytest.fixture
def rung() -> Iterator[Rung]:
    made = Rung()
    yield made
    made.close()


@pytest.fixture
def broker(vhost: str) -> Iterator[Broker]:
    with shmbroker.connect(f"shm://{vhost}") as opened:
        yield opened


def test_each_order_is_told_of_once_when_it_is_worth_trying(rung: Rung, broker: Broker) -> None:
    queue, other = broker.declare_queue("q", slots=16), broker.declare_queue("other", slots=16)
    rung.watch("first", queue)
    rung.watch("other", other)
    queue.publish(b"1")
    rung.until(lambda: rung.told == ["first"])
    queue.publish(b"2")
    rung.watch("second", queue, 1)
    other.publish(b"3")
    rung.until(lambda: len(rung.told) == 3)
    assert sorted(rung.told[1:]) == ["other", "second"]


def test_many_orders_at_once_are_all_told_of(rung: Rung, broker: Broker) -> None:
    queue = broker.declare_queue("q", slots=16)
    names = list(range(3 * RUNG_MAX + 1))
    for name in names:
        rung.watch(name, queue)
    queue.publish(b"1")
    rung.until(lambda: len(rung.told) == len(names))
    assert sorted(rung.told) == names


def test_what_is_forgotten_is_not_told_of(rung: Rung, broker: Broker) -> None:
    queue = broker.declare_queue("q", slots=16)
    ticket = rung.watch("forgotten", queue)
    rung.watch("wanted", queue)
    rung.sleeper.forget(ticket, queue._queue, 0, ANY)
    queue.publish(b"1")
    rung.until(lambda: bool(rung.told) and not rung.sleeper._forgotten)
    assert rung.told == ["wanted"]


def test_a_queue_stays_open_until_nobody_looks_at_it_any_more(rung: Rung, broker: Broker) -> None:
    queue = broker.declare_queue("q", slots=16)
    kept = weakref.ref(queue._queue)
    ticket = rung.sleeper.watch(queue._queue, ROOM, ANY, lambda: None)
    handle = queue._queue
    del queue
    rung.sleeper.forget(ticket, handle, ROOM, ANY)
    del handle
    assert kept() is not None
    rung.until(lambda: not rung.sleeper._forgotten)
    gc.collect()
    assert kept() is None


def test_of_a_queue_that_is_deleted_all_find_out(rung: Rung, broker: Broker) -> None:
    rung.watch("gone", broker.declare_queue("q", slots=16))
    broker.delete_queue("q", force=True)
    rung.until(lambda: rung.told == ["gone"])


def test_a_sleeper_that_was_closed_tells_nothing(broker: Broker) -> None:
    rung = Rung()
    queue = broker.declare_queue("q", slots=16)
    ticket = rung.watch("late", queue)
    rung.sleeper.close()
    queue.publish(b"1")
    rung.sleeper.ring()
    rung.sleeper.forget(ticket, queue._queue, 0, ANY)
    rung.close()
    assert rung.told == []
