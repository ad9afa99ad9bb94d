"""The journal of durable schedules and last values, frame by frame: a crash behind any of them leaves
every message in one place, and of each key a value that is not older than one that is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import shmbroker

from shmbroker.core import layout
from shmbroker.ipc import records
from shmbroker.ipc.replay import Record, Replay
from tests.crash.process import Process
from tests.ipc.host import PATIENCE, journaling

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
            mine.tend(timeout=PATIENCE)
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


@pytest.mark.parametrize("takes", [False, True])
def test_there_is_a_value_at_every_frame_and_none_comes_back(
    vhost: str, tmp_path: Path, takes: bool
) -> None:
    """One key, which is replaced as fast as it goes, or also taken."""
    news = 40_000

    def publish() -> int:
        with shmbroker.connect(f"shm://{vhost}") as mine:
            rates = mine.queue("rates")
            for number in range(news):
                rates.publish(b"%d" % number, key="k", confirm="shm", timeout=PATIENCE)
        return 0

    def newest_is_there(frames: Frames) -> None:
        nonlocal taken
        for queue, newest in frames.newest.items():
            there = frames.there[queue]
            if there:
                assert max(there) == newest, "an older value comes back"
            else:
                taken += 1

    def take() -> int:
        with shmbroker.connect(f"shm://{vhost}") as mine:
            while True:
                mine.queue("rates").receive(timeout=PATIENCE)

    taken = 0
    with shmbroker.connect(f"shm://{vhost}") as broker, ExitStack() as stack:
        rates = broker.declare_queue("rates", durable=True, last_value=True, slots=256)
        with journaling(vhost, tmp_path / "journal", segment=LARGE):
            if takes:
                stack.callback(Process(take, tmp_path / "errors").kill)
            publisher = Process(publish, tmp_path / "errors")
            stack.callback(publisher.kill)
            assert publisher.has_ended(60), "it waits for ever"
            assert publisher.status == 0, publisher.errors.read_text()
            rates.confirm(timeout=PATIENCE)
    assert each_frame(tmp_path / "journal", newest_is_there) > 100
    assert takes or taken == 0, "nobody has taken any"
