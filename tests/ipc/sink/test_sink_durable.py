"""The journal has how far a stream is with its messages: after the host died it goes on there."""

from __future__ import annotations

from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker, Empty, Queue
from shmbroker.core.codes import DUPLICATE
from shmbroker.ipc.journal.export import compacted
from shmbroker.ipc.sink.sink import Sink
from tests.support.host import PATIENCE, after_the_host_died, journaling
from tests.support.records import chunk, record, stream

ORIGIN = bytes(range(16))
SMALL = 64 << 10


def bodies(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


def taken(queue: Queue) -> list[bytes]:
    got: list[bytes] = []
    try:
        while True:
            got += [bytes(body) for body in queue.receive_many(1 << 14, timeout=0)]
    except Empty:
        return got


def poured(broker: Broker, name: str, first: int, last: int, size: int = 0) -> list[int]:
    """Pour, and wait until it is on disk: the answers."""
    queue = broker.queue(name)
    with Sink(broker, ORIGIN) as sink:
        sink.to_queue(queue)
        told = sink.pour(stream([each + bytes(size) for each in bodies(first, last)], first))
        assert told.code == 0
        positions = [answer for answer in told.answers if answer >= 0]
        if positions:
            queue.confirm(positions[-1], timeout=PATIENCE)
        return list(told.answers)


def position(broker: Broker, name: str) -> int:
    with Sink(broker, ORIGIN) as sink:
        return sink.to_queue(broker.queue(name))


def test_a_stream_goes_on_after_the_host_died(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        broker.declare_queue("q", slots=64, durable=True)
        poured(broker, "q", 0, 10)
        assert taken(broker.queue("q"))[:4] == bodies(0, 4)
    for epoch in (2, 3):
        with after_the_host_died(vhost, tmp_path, epoch) as broker:
            begun = 10 * (epoch - 1)
            assert position(broker, "q") == begun
            assert poured(broker, "q", begun - 5, begun + 10)[:5] == [DUPLICATE] * 5
            taken(broker.queue("q"))


def test_it_is_known_when_the_segments_of_its_messages_are_gone(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q", slots=64, durable=True)
        with journaling(vhost, tmp_path, 1, SMALL) as journaler:
            for begun in range(0, 400, 20):
                poured(broker, "q", begun, begun + 20, size=2000)
                taken(queue)
            queue.publish_many([bytes(1000)] * 50)
            taken(queue)
            assert journaler.statistics().segments < 8
    with after_the_host_died(vhost, tmp_path, 2, SMALL) as broker:
        assert position(broker, "q") == 400


def test_it_is_known_when_the_journal_was_compacted(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        broker.declare_queue("q", slots=64, durable=True)
        poured(broker, "q", 0, 10)
        assert taken(broker.queue("q")) == bodies(0, 10)
    compacted(tmp_path, pytest.fail)
    with after_the_host_died(vhost, tmp_path, 2) as broker:
        assert position(broker, "q") == 10
        assert taken(broker.queue("q")) == []


def test_a_stream_whose_place_another_has_is_not_known(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        queue = broker.declare_queue("q", slots=256, durable=True)
        for number in range(70):  # more than the first page of the table has
            sink = Sink(broker, bytes([number]) * 16)
            sink.to_queue(queue)
            sink.pour(stream([b"x"], first=1000 + number))
            taken(queue)
            sink.close(forgets=number % 2 == 0)
        queue.publish(b"last", timeout=PATIENCE)
    with after_the_host_died(vhost, tmp_path, 2) as broker:
        for number in range(70):
            with Sink(broker, bytes([number]) * 16) as sink:
                known = sink.to_queue(broker.queue("q"))
                assert known in ((0, 1001 + number) if number % 2 == 0 else (1001 + number,))


def test_a_refused_record_is_known_too(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        queue = broker.declare_queue("q", slots=64, durable=True)
        with Sink(broker, ORIGIN) as sink:
            sink.to_queue(queue)
            assert sink.pour(record(0, chunk(b"a")) + record(6, b"none at all")).refused == 1
        queue.publish(b"behind", timeout=PATIENCE)
        queue.publish(b"behind", timeout=PATIENCE)
    with after_the_host_died(vhost, tmp_path, 2) as broker:
        assert position(broker, "q") == 7


@pytest.mark.parametrize("deaths", range(3))
def test_the_broker_and_then_the_host_die(vhost: str, tmp_path: Path, deaths: int) -> None:
    """What another journaler took over is known as far as it is on disk."""
    epoch = 1
    with shmbroker.connect(f"shm://{vhost}") as broker:
        broker.declare_queue("q", slots=256, durable=True)
        for epoch in range(1, 2 + deaths):
            with journaling(vhost, tmp_path, epoch):
                poured(broker, "q", 10 * epoch - 10, 10 * epoch)
        with Sink(broker, ORIGIN) as sink:  # nobody writes this
            sink.to_queue(broker.queue("q"))
            sink.pour(stream(bodies(500, 510), first=500))
    with after_the_host_died(vhost, tmp_path, epoch + 1) as broker:
        assert position(broker, "q") == 10 * epoch


def test_how_far_it_is_in_an_exchange_is_known(vhost: str, tmp_path: Path) -> None:
    poured = b"".join(record(each, chunk(b"%d" % each, key=b"ab"[:1])) for each in range(6))
    poured += record(6, chunk(b"nobody", key=b"c"))
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        queue = broker.declare_queue("q", slots=64, durable=True)
        broker.declare_exchange("prices", "direct")
        broker.bind("prices", "q", "a")
        with Sink(broker, ORIGIN) as sink:
            sink.to_exchange(broker.exchange("prices"))
            assert sink.pour(poured).answers == [1] * 6 + [0]
        for _ in range(3):
            queue.publish(b"behind", timeout=PATIENCE)
    with after_the_host_died(vhost, tmp_path, 2) as broker, Sink(broker, ORIGIN) as sink:
        assert sink.to_exchange(broker.exchange("prices")) == 7
        assert [each.name for each in broker.queues()] == ["q"]
        assert position(broker, "q") == 6
