"""What came over a network link says so, and nobody else fetches it; whose turn a position is."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker import Broker, Queue
from shmbroker.ipc.queue.moving import pass_over
from shmbroker.ipc.sink.fetch import Fetch
from shmbroker.ipc.sink.sink import Sink
from shmbroker.ipc.sink.target import target_of
from tests.ipc.paging.test_paging import eventually, received
from tests.ipc.paging.test_paging_durable import Host, declare
from tests.ipc.sink.test_sink_node import ORIGIN, read, taken
from tests.support.host import journaling
from tests.support.records import stream


@pytest.fixture
def ring(broker: Broker) -> Queue:
    return broker.declare_queue("$link.n.fetch", slots=64)


def fetched(source: Queue, ring: Queue, cycle: int = 1, turn: int = 0, most: int = 64) -> int:
    return pass_over(
        source, ring, most, None, 0, copies=False, towards=target_of(source.name),
        fetch=Fetch(cycle, turn),
    ).messages  # fmt: skip


def filled(broker: Broker, name: str, count: int) -> Queue:
    queue = broker.declare_queue(name, slots=64)
    for number in range(count):
        queue.publish(b"%d" % number)
    return queue


def test_of_each_cycle_one_position_goes(broker: Broker, ring: Queue) -> None:
    queue = filled(broker, "orders", 7)
    assert fetched(queue, ring, 3, 2) == 2
    assert taken(queue) == [b"0", b"1", b"3", b"4", b"6"]
    assert taken(ring) == [b"2", b"5"]


def test_what_was_passed_over_is_not_looked_at_again(broker: Broker, ring: Queue) -> None:
    """If the next look says where the last one ended."""
    queue = filled(broker, "orders", 7)
    fetch = Fetch(3, 2)
    passed = pass_over(queue, ring, 1, None, 0, copies=False, fetch=fetch)
    assert passed[:3] == (1, False, 3)
    passed = pass_over(queue, ring, 64, None, 0, copies=False, fetch=fetch, begin=6)
    assert passed[:3] == (0, False, 7)
    passed = pass_over(queue, ring, 64, None, 0, copies=False, fetch=fetch, begin=passed.end)
    assert passed[:3] == (0, False, 7)
    assert fetched(queue, ring, 3, 2) == 1, "it is there"


def test_it_ends_at_what_is_not_synced_yet(
    broker: Broker, ring: Queue, vhost: str, tmp_path: Path
) -> None:
    queue = broker.declare_queue("orders", slots=64, durable=True)
    with journaling(vhost, tmp_path / "journal"):
        for _ in range(3):
            queue.publish(b"x", confirm="disk")
    queue.publish_many([b"y"] * 4, confirm="shm")
    passed = pass_over(queue, ring, 64, None, 0, copies=False, fetch=Fetch(1, 0))
    assert passed[:3] == (3, False, 3)
    assert queue.published == 7


def test_only_so_many_go(broker: Broker, ring: Queue) -> None:
    queue = filled(broker, "orders", 7)
    assert fetched(queue, ring, most=3) == 3
    assert fetched(queue, ring) == 4


@pytest.mark.parametrize("travels", [True, False])
def test_what_came_over_a_link_goes_over_no_other(
    broker: Broker, ring: Queue, travels: bool
) -> None:
    """Two vhosts would do, too: the queue there has the name of the one here."""
    queue = filled(broker, "orders", 5)
    assert fetched(queue, ring) == 5
    with Sink(broker, ORIGIN, stops_at_refused=True, travels=travels) as sink:
        sink.to_node()
        assert sink.pour(read(broker, ring)).appended == 5
    queue.publish(b"of this broker")
    assert fetched(queue, ring) == (1 if travels else 6)


def test_it_is_taken_as_any_message(broker: Broker, ring: Queue) -> None:
    queue = broker.declare_queue("orders", slots=64)
    queue.publish(b"tea", key="k", properties={"cups": 2}, ttl=100.0)
    fetched(queue, ring)
    with Sink(broker, ORIGIN, stops_at_refused=True, travels=True) as sink:
        sink.to_node()
        sink.pour(read(broker, ring))
    [message] = queue.browse()
    assert (message.body, message.key, dict(message.properties)) == (b"tea", "k", {"cups": 2})
    assert message.expires_at is not None
    other = broker.declare_queue("other", slots=64)
    queue.move_to(other)
    assert fetched(other, ring) == 1, "who moves it by hand makes it a message of this broker"


def test_it_says_so_also_out_of_pages_and_after_the_host_died(vhost: str, tmp_path: Path) -> None:
    host = Host(vhost, tmp_path)
    with host.up() as broker:
        queue = declare(broker)
        records = stream([number.to_bytes(8, "little") for number in range(3000)], 0)
        with Sink(broker, ORIGIN, travels=True) as sink:
            sink.to_queue(queue)
            at = last = 0
            while at < len(records):
                told = sink.pour(memoryview(records)[at:], timeout=20)
                at += told.bytes
                last = told.answers[-1] if told.answers else last
        assert queue.statistics().paged > 0
        queue.confirm(last, timeout=20)
    host.dies()
    with host.up() as broker:
        queue = broker.queue("orders")
        ring = broker.declare_queue("$link.n.fetch", slots=64)
        for first in range(0, 3000, 500):
            assert fetched(queue, ring) == 0
            assert received(queue, 500) == list(range(first, first + 500))
        queue.publish(bytes(8))
        eventually(lambda: fetched(queue, ring) == 1)
