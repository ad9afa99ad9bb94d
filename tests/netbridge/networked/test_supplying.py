"""What others fetch is moved as soon as something tells: nothing is looked at again and again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shmbroker import Broker, Queue
from shmbroker.ipc.follower.follower import Follower
from shmbroker.ipc.queue_replica.copy import declare, detach
from shmbroker.netbridge.network.supply import Way
from shmbroker.netbridge.networked import supplying as module
from shmbroker.netbridge.networked.supplying import Supplying
from tests.ipc.paging.test_paging import eventually
from tests.netbridge.networked.conftest import consumes
from tests.support.host import journaling

NEVER = 1e6
RING = "$link.n.fetch"


@pytest.fixture
def ring(broker: Broker) -> Queue:
    return broker.declare_queue(RING, slots=64)


@pytest.fixture
def orders(broker: Broker) -> Queue:
    return broker.declare_queue("orders", slots=64)


@pytest.fixture
def supplying(broker: Broker, ring: Queue) -> Iterator[Supplying]:
    told: list[Any] = []
    with Supplying(broker, told.append) as made:
        yield made
    assert told == []


@pytest.fixture
def events_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nothing tells is not looked at."""
    for each in ("LOOK_SECONDS", "ANEW_SECONDS"):
        monkeypatch.setattr(module, each, NEVER)


def way(*queues: str, prefetch: int = 64, ring: str = RING) -> Way:
    return Way(ring, prefetch, frozenset(queues))


def waits(supplying: Supplying, queue: str = "orders") -> None:
    """It has looked at this queue, and nothing of it goes."""
    awaited = supplying._awaited
    eventually(lambda: queue not in awaited.due and queue in awaited._watched)


@pytest.mark.usefixtures("events_only")
def test_a_message_goes_when_it_is_published(
    orders: Queue, ring: Queue, supplying: Supplying
) -> None:
    supplying.goes((way("orders"),))
    for count in range(1, 6):
        waits(supplying)
        orders.publish(b"x")
        eventually(lambda count=count: len(ring) == count)
    assert len(orders) == 0


@pytest.mark.usefixtures("events_only")
def test_it_goes_when_it_is_synced(
    broker: Broker, ring: Queue, supplying: Supplying, vhost: str, tmp_path: Path
) -> None:
    """It is there before, and nobody may take it: which is looked at in vain."""
    orders = broker.declare_queue("orders", slots=64, durable=True)
    for _ in range(3):
        orders.publish(b"x", confirm="shm")
    supplying.goes((way("orders"),))
    waits(supplying)
    assert len(ring) == 0
    with journaling(vhost, tmp_path / "journal"):
        eventually(lambda: len(ring) == 3)


@pytest.mark.usefixtures("events_only")
def test_one_that_comes_back_goes(
    orders: Queue, ring: Queue, supplying: Supplying, other: Broker
) -> None:
    """Of two positions one is for the consumer here."""
    there = other.queue("orders")
    orders.publish_many([b"0", b"1"])
    held = [there.get(timeout=0) for _ in range(2)]
    supplying.goes((way("orders"),))
    waits(supplying)
    assert len(ring) == 0
    for each in held:
        each.give_back()
    eventually(lambda: [bytes(each.body) for each in ring.browse()] == [b"1"])


def test_its_share_goes_when_a_consumer_leaves(
    orders: Queue, ring: Queue, supplying: Supplying, other: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANEW_SECONDS", NEVER)
    consumes(other.queue("orders"))
    orders.publish_many([b"0", b"1"])
    supplying.goes((way("orders"),))
    eventually(lambda: [bytes(each.body) for each in ring.browse()] == [b"1"])
    waits(supplying)
    assert len(orders) == 1
    other.close()
    eventually(lambda: len(ring) == 2)


@pytest.mark.usefixtures("events_only")
def test_a_share_goes_when_so_much_was_confirmed(
    broker: Broker, orders: Queue, ring: Queue, supplying: Supplying
) -> None:
    """An eighth of what may be on its way, and not when all of it has arrived."""
    orders.publish_many([b"%d" % each for each in range(40)])
    supplying.goes((way("orders", prefetch=16),))
    eventually(lambda: len(ring) == 16 and RING in supplying._room_at)
    with Follower(broker, "link") as link:
        number = link.add(ring)
        for end in range(1, 25):
            link.read()
            link.retire(number, end)
            supplying.confirmed(RING, end)
            if end % 2 == 0:
                eventually(lambda end=end: ring.published == 16 + end)
    assert len(orders) == 0


@pytest.mark.usefixtures("events_only")
def test_the_turn_of_a_link_that_is_full_is_for_the_others(
    broker: Broker, orders: Queue, ring: Queue, supplying: Supplying
) -> None:
    other = broker.declare_queue("$link.m.fetch", slots=64)
    supplying.goes((way("orders", prefetch=1), way("orders", ring=other.name)))
    waits(supplying)
    orders.publish_many([b"%d" % each for each in range(10)])
    eventually(lambda: (len(ring), len(other)) == (1, 9))


@pytest.mark.usefixtures("events_only")
def test_what_is_not_wanted_any_more_stays(
    orders: Queue, ring: Queue, supplying: Supplying, broker: Broker
) -> None:
    stock = broker.declare_queue("stock", slots=64)
    supplying.goes((way("orders", "stock"),))
    waits(supplying)
    supplying.goes((way("stock"),))
    orders.publish(b"x")
    stock.publish(b"y")
    eventually(lambda: len(ring) == 1)
    waits(supplying, "stock")
    assert len(orders) == 1
    supplying.goes((way("orders"),))
    eventually(lambda: len(ring) == 2)


@pytest.mark.usefixtures("events_only")
def test_only_what_has_news_is_looked_at(
    broker: Broker, ring: Queue, supplying: Supplying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More queues than the kernel waits for at once."""
    queues = [broker.declare_queue(f"q{each}", slots=8) for each in range(200)]
    supplying.goes((way(*(each.name for each in queues)),))
    for each in queues:
        waits(supplying, each.name)
    looked: list[str] = []
    supply = supplying._supply
    monkeypatch.setattr(
        supplying, "_supply", lambda source, now: (looked.append(source.name), supply(source, now))
    )
    queues[150].publish(b"x")
    eventually(lambda: len(ring) == 1)
    waits(supplying, "q150")
    assert set(looked) == {"q150"}


def test_a_queue_that_is_declared_or_goes_on_is_looked_at(
    broker: Broker, ring: Queue, supplying: Supplying
) -> None:
    supplying.goes((way("late"),))
    eventually(lambda: supplying._awaited.absent == {"late"})
    late = broker.declare_queue("late", slots=64)
    late.publish(b"x")
    eventually(lambda: len(ring) == 1)
    late.pause()
    late.publish(b"y")
    eventually(lambda: supplying._awaited.stuck == {"late"})
    late.resume()
    eventually(lambda: len(ring) == 2)
    broker.delete_queue("late")
    eventually(lambda: supplying._awaited.absent == {"late"})
    broker.declare_queue("late", slots=64).publish(b"z")
    eventually(lambda: len(ring) == 3)


def test_a_replica_goes_when_it_is_detached(
    broker: Broker, ring: Queue, supplying: Supplying
) -> None:
    broker.declare_queue("copy", slots=64)
    declare(broker, "copy", 0, b"tcp://far")
    supplying.goes((way("copy"),))
    eventually(lambda: supplying._awaited.absent == {"copy"})
    copy = broker.queue("copy")
    detach(copy)
    copy.publish(b"x")
    eventually(lambda: len(ring) == 1)
