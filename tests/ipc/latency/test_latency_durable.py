"""publish-durable: how long it takes until a message is on disk, counted by the journaler."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from shmbroker import Broker, Queue
from shmbroker.ipc.paging.pager import Pager
from tests.cli.command import eventually
from tests.support.host import PATIENCE, journaling

MANY = 200


@pytest.fixture
def orders(broker: Broker) -> Queue:
    made = broker.declare_queue("orders", durable=True)
    made.latency(True)
    return made


def counted(queue: Queue) -> int:
    return queue.histograms()["publish-durable"].total


def test_each_message_is_counted_when_it_is_on_disk(
    orders: Queue, vhost: str, tmp_path: Path
) -> None:
    published = time.time_ns()
    orders.publish_many([b"x"] * MANY, confirm="shm")
    assert counted(orders) == 0
    time.sleep(0.02)
    started = time.time_ns()
    with journaling(vhost, tmp_path):
        orders.confirm(timeout=PATIENCE)
        eventually(lambda: counted(orders) == MANY)
        counted_by = time.time_ns()
        found = orders.histograms()["publish-durable"]
        assert found.percentile(0) > (started - published) * 0.9
        assert found.maximum < (counted_by - published) * 1.02
        orders.receive_many(MANY, timeout=PATIENCE)
        assert {kind: each.total for kind, each in orders.histograms().items()} == {
            "publish-take": MANY, "take-ack": MANY, "publish-durable": MANY
        }  # fmt: skip


def test_the_next_journaler_goes_on(orders: Queue, vhost: str, tmp_path: Path) -> None:
    for _ in range(2):
        with journaling(vhost, tmp_path):
            orders.publish(b"x", timeout=PATIENCE)
            orders.publish(b"y", timeout=PATIENCE)
    assert counted(orders) == 4


def test_off_and_a_sample(orders: Queue, vhost: str, tmp_path: Path) -> None:
    with journaling(vhost, tmp_path):
        orders.latency(False)
        orders.publish_many([b"x"] * MANY, timeout=PATIENCE)
        orders.latency(True, one_in=16)
        orders.publish_many([b"x"] * MANY, timeout=PATIENCE)
    assert 0 < counted(orders) < MANY / 4


def test_what_goes_through_pages_is_counted_once(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    with journaling(vhost, tmp_path / "journal"), Pager(broker, tmp_path / "pages", epoch=1):
        queue = broker.declare_queue("paged", slots=16, durable=True, when_full="page")
        queue.latency(True)
        queue.publish_many([b"x" * 100] * MANY, timeout=PATIENCE)
        assert queue.statistics().paged > 0
        left = MANY
        while left:
            left -= len(queue.receive_many(left, timeout=PATIENCE))
    assert counted(queue) == MANY


def test_other_queues_have_no_such_times(broker: Broker) -> None:
    queue = broker.declare_queue("fleeting")
    queue.latency(True)
    assert "publish-durable" not in queue.histograms()
