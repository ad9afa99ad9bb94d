"""When what stands here is synced, marks of streams too."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import shmbroker
from shmbroker import Broker, Queue
from shmbroker.ipc.sink.sink import Sink, marks
from shmbroker.netbridge.carrier.source import Shipped, Source
from shmbroker.netbridge.carrier.thread import NetworkThread
from tests.support.host import PATIENCE, after_the_host_died, journaling

ORIGIN = b"a stream's origin"[:16]
SEGMENT = 32 << 20
"""No segment is recycled while the journal is copied."""


@contextmanager
def networked(vhost: str) -> Iterator[tuple[Broker, NetworkThread]]:
    with shmbroker.connect(f"shm://{vhost}", name="net") as broker, NetworkThread(broker) as thread:
        yield broker, thread


def told(thread: NetworkThread) -> Event:
    """When all that stands there now is synced."""
    event = Event()
    thread.ask(lambda: thread.after_sync(event.set))
    return event


def moved(broker: Broker, *positions: int) -> None:
    """The mark of a stream to an exchange without a queue: no message tells of it."""
    broker.declare_exchange("trade", "topic")
    with Sink(broker, ORIGIN, stops_at_refused=True) as sink:
        sink.to_exchange(broker.exchange("trade"))
        for each in positions:
            sink.skip(each)


def test_a_mark_is_in_the_journal_when_it_is_told(vhost: str, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with networked(vhost) as (broker, thread), journaling(vhost, journal, segment=SEGMENT):
        busy = broker.declare_queue("busy", slots=1 << 14, durable=True)
        busy.publish_many([bytes(900)] * 10_000, confirm="shm")  # of several frames
        moved(broker, *range(1, 4000))
        assert told(thread).wait(PATIENCE)
        is_spare = shutil.ignore_patterns("*.spare")  # one may become a segment meanwhile
        copied = shutil.copytree(journal, tmp_path / "copied", ignore=is_spare)
        moved(broker, 5000)
        second, third = told(thread), told(thread)
        assert second.wait(PATIENCE)
        assert third.wait(PATIENCE)
        assert len(marks(broker)) == 0, "what was published for that is gone"
    for folder, mark in ((copied, 3999), (journal, 5000)):
        with (
            after_the_host_died(vhost, folder, segment=SEGMENT) as broker,
            Sink(broker, ORIGIN) as sink,
        ):
            assert sink.to_exchange(broker.exchange("trade")) == mark


def test_nobody_is_told_while_no_journal_is_written(vhost: str, tmp_path: Path) -> None:
    with networked(vhost) as (broker, thread):
        moved(broker, 40)
        event = told(thread)
        assert not event.wait(0.3)
        with journaling(vhost, tmp_path / "journal"):
            assert event.wait(PATIENCE)


def test_what_a_link_poured_is_read_when_it_is_synced(vhost: str, tmp_path: Path) -> None:
    with networked(vhost) as (broker, thread):
        queue = broker.declare_queue("private")
        found: list[int] = []
        news = Event()

        def begun() -> Source:
            source = Source(broker, thread.sleeper, "link", Shipped("private", "there"), news.set)
            source.holds(thread.after_sync)
            return source

        source = thread.ask(begun)

        def read() -> int:
            batch = source.read(100, 1 << 20)
            return 0 if batch is None else batch.messages

        try:
            fill(queue, 3)
            assert [thread.ask(read), thread.ask(read)] == [3, 0], "of programs here"
            fill(queue, 2)
            thread.ask(source.hold)
            fill(queue, 1)
            assert thread.ask(read) == 0
            with journaling(vhost, tmp_path / "journal"):
                while sum(found) < 3:
                    assert news.wait(PATIENCE)
                    news.clear()
                    found.append(thread.ask(read))
            assert [found[-1], thread.ask(read)] == [3, 0]
            news.clear()
            fill(queue, 1)  # whoever has read to the end is told
            assert news.wait(PATIENCE)
            assert thread.ask(read) == 1, "none is read twice"
        finally:
            thread.ask(source.close)


def fill(queue: Queue, count: int) -> None:
    for _ in range(count):
        queue.publish(b"x")
