"""The journal of durable schedules and last values, frame by frame: a crash behind any of them
leaves every message in one place, and of each key a value.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random

import shmbroker
from shmbroker.core import layout
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.replay import Record, Replay
from shmbroker.perf.machine.process import Process
from tests.support.host import PATIENCE, journaling

LARGE = 1 << 24
"""A segment that all of it goes into."""


class Frames:
    """What a journal has of each queue that is not retired, up to some record."""

    def __init__(self) -> None:
        self.schedules: set[int] = set()
        self.there: dict[int, dict[int, bytes]] = {}
        self.newest: dict[int, int] = {}

    def note(self, record: Record) -> None:
        queue, position = record.queue, record.position
        there = self.there.setdefault(queue, {})
        if record.kind == records.QUEUE:
            if int.from_bytes(record.body[24:32], "little") & layout.QUEUE_SCHEDULE:
                self.schedules.add(queue)
        elif record.kind == records.MESSAGE:
            shape = int.from_bytes(record.body[:8], "little")
            body = record.body[len(record.body) - (shape >> layout.SHAPE_BODY_SHIFT) :]
            skip = layout.SCHEDULED_BYTES if queue in self.schedules else 0
            there[position] = body[skip:]
            self.newest[queue] = position
        elif record.kind == records.RETIRED:
            bits = int.from_bytes(record.body, "little")
            for each in list(there):
                if each < position or bits >> (each - position) & 1:
                    del there[each]


def each_frame(folder: Path, check: Callable[[Frames], None]) -> int:
    """How many there are."""
    frames, count = Frames(), 0
    with Replay(folder) as replay:
        for record in replay:
            frames.note(record)
            if record.last:
                count += 1
                check(frames)
    return count


def test_what_is_moved_is_in_one_place_at_every_frame(vhost: str, tmp_path: Path) -> None:
    """Messages go round: from the schedule to the queue, and back, before they are on disk too."""
    many, rounds = 40, 3000

    def publish() -> int:
        with shmbroker.connect(f"shm://{vhost}") as mine:
            for number in range(many):
                delay = 1e-9 if number % 2 else 0.001
                mine.queue("jobs").publish(b"%d" % number, deliver_after=delay, confirm="shm")
            mine.repair_for(timeout=PATIENCE)
        return 0

    def there_once(frames: Frames) -> None:
        found = Counter(body for there in frames.there.values() for body in there.values())
        assert set(found.values()) <= {1}
        assert len(found) >= len(seen), "one is lost"
        seen.update(found)

    seen: set[bytes] = set()
    with shmbroker.connect(f"shm://{vhost}") as broker, ExitStack() as stack:
        jobs = broker.declare_queue(
            "jobs", durable=True, max_deliveries=None, redelivery_delay=1e-6, max_scheduled=2 * many
        )
        publisher = Process(publish, tmp_path / "errors")
        stack.callback(publisher.kill)
        with journaling(vhost, tmp_path / "journal", segment=LARGE):
            for _ in range(rounds):
                with jobs.get(timeout=PATIENCE) as message:
                    message.give_back()
            while jobs.confirmed < jobs.published:
                jobs.confirm(timeout=PATIENCE)
    assert each_frame(tmp_path / "journal", there_once) > rounds / 20
    assert len(seen) == many


def test_there_is_a_value_at_every_frame(vhost: str, tmp_path: Path) -> None:
    """One key, replaced as soon as it is on disk, while others make the journaler write frames.

    There are so many queues that it takes some time to see them all: what replaces a value comes
    in the middle of that.
    """
    news, others = 1500, 200

    def keep_writing() -> int:
        with shmbroker.connect(f"shm://{vhost}") as mine:
            queue = mine.queue("busy")
            while True:
                with mine.transaction() as tx:
                    tx.publish(queue, b"x")
                    tx.commit(confirm="shm")
                queue.receive(timeout=PATIENCE)

    def newest_is_there(frames: Frames) -> None:
        for queue, newest in frames.newest.items():
            if queue in rates_only:
                assert newest in frames.there[queue], "it is gone, and nothing has replaced it"

    random = Random(3)
    with shmbroker.connect(f"shm://{vhost}") as broker, ExitStack() as stack:
        rates = broker.declare_queue("rates", durable=True, last_value=True, slots=64)
        for number in range(others):
            broker.declare_queue(f"other.{number}", durable=True, slots=2)
        broker.declare_queue("busy", durable=True)
        with journaling(vhost, tmp_path / "journal", segment=LARGE):
            stack.callback(Process(keep_writing, tmp_path / "errors").kill)
            for number in range(news):
                rates.publish(b"%d" % number, key="k", timeout=PATIENCE)
                pause = time.perf_counter() + random.uniform(0, 0.0005)
                while time.perf_counter() < pause:
                    pass
    with Replay(tmp_path / "journal") as replay:
        rates_only = {
            record.queue
            for record in replay
            if record.kind == records.QUEUE and b"rates" in record.body[72:77]
        }
    assert len(rates_only) == 1
    assert each_frame(tmp_path / "journal", newest_is_there) > news / 10
