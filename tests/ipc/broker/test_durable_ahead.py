"""Large frames of the journaler, written while they are gathered: nothing of them counts before the
sync, and who is not live any more writes nothing ahead either.
"""

from __future__ import annotations

import threading
from pathlib import Path
from random import Random

import pytest

import shmbroker
from shmbroker import Unconfirmed
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.replay import Record, Replay
from shmbroker.perf.machine.process import Process
from tests.support.host import PATIENCE, after_the_host_died, journaling

BATCH = 150
BYTES = 8 << 10
"""Of a message: a batch is more than a frame has at most, which is 1 MiB."""
SEGMENT = 4 << 20
KILLS = 50
END = -1


def batch(number: int) -> list[bytes]:
    return [b"%d " % (number * BATCH + each) + bytes(BYTES) for each in range(BATCH)]


def numbers_of(bodies: list[bytes]) -> list[int]:
    return [int(body.split()[0]) for body in bodies]


def test_nothing_is_lost_when_the_journaler_is_killed_in_a_large_frame(
    vhost: str, tmp_path: Path
) -> None:
    """Every second batch is a transaction; the host dies at the end, with two batches unread."""
    random, done = Random(9), threading.Event()
    seen: list[int] = []
    batches = 0
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders", slots=1024, durable=True)

        def produce() -> None:
            nonlocal batches
            while not done.is_set():
                if batches % 2:
                    with broker.transaction(timeout=PATIENCE) as together:
                        for body in batch(batches):
                            together.publish(queue, body)
                else:
                    queue.publish_many(batch(batches), confirm="shm", timeout=PATIENCE)
                batches += 1

        def consume() -> None:
            while END not in seen[-1:]:
                seen.extend(numbers_of(queue.receive_many(64, timeout=PATIENCE)))

        threads = [threading.Thread(target=each) for each in (produce, consume)]
        for thread in threads:
            thread.start()
        for epoch in range(1, KILLS + 1):

            def write(epoch: int = epoch) -> int:
                with journaling(vhost, tmp_path / "journal", epoch, SEGMENT):
                    threading.Event().wait()
                return 0

            process = Process(write, tmp_path / "errors")
            try:
                if epoch % 5 == 0:  # the others may be killed while they begin
                    queue.confirm(timeout=PATIENCE)
                assert not process.has_ended(random.uniform(0, 0.05)), process.errors.read_text()
            finally:
                process.kill()
        with journaling(vhost, tmp_path / "journal", KILLS + 1, SEGMENT):
            done.set()
            threads[0].join(PATIENCE)
            queue.publish(b"%d" % END, timeout=PATIENCE)
            threads[1].join(PATIENCE)
            for _ in range(2):
                queue.publish_many(batch(batches), confirm="disk", timeout=PATIENCE)
                batches += 1
    with after_the_host_died(vhost, tmp_path / "journal", KILLS + 2, SEGMENT) as broker:
        left = numbers_of([each.body for each in broker.queue("orders").browse()])
        assert [*seen[:-1], *left] == list(range(batches * BATCH))
    assert batches > 2, "more than those at the end, on a slow disk, too"


def test_each_queue_has_its_share_of_a_frame(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        large = broker.declare_queue("large", slots=1024, durable=True)
        small = broker.declare_queue("small", slots=1024, durable=True)
        for number in range(4):
            large.publish_many(batch(number), confirm="shm")
        small.publish_many([b"small"] * 1000, confirm="shm")
        with journaling(vhost, tmp_path / "journal", 1, SEGMENT):
            large.confirm(timeout=PATIENCE)
            small.confirm(timeout=PATIENCE)
    with Replay(tmp_path / "journal") as replay:
        messages = [each for each in replay if each.kind == records.MESSAGE]
    frames = [{each.frame for each in messages if each.queue == one} for one in queues(messages)]
    few, many = sorted(frames, key=len)
    assert len(many) > 2
    assert len(few) == 1
    assert few == {min(many)}


def queues(messages: list[Record]) -> set[int]:
    return {each.queue for each in messages}


def test_who_is_not_live_any_more_writes_nothing_ahead(vhost: str, tmp_path: Path) -> None:
    fence, folder = tmp_path / "fence", tmp_path / "journal"
    fence.write_bytes(b"%016x" % 1)
    folder.mkdir()
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        fence.open("rb", buffering=0) as looked_at,
        Journaler(folder, segment_bytes=SEGMENT) as journaler,
    ):
        queue = broker.declare_queue("orders", slots=1024, durable=True)
        journaler.watched(looked_at.fileno(), None)
        journaler.start(broker, 1)
        queue.publish(b"0 ours", timeout=PATIENCE)
        fence.write_bytes(b"%016x" % 2)
        with pytest.raises(Unconfirmed):
            queue.publish_many(batch(1), confirm="disk", timeout=0.1)
        assert any("another broker is live" in str(why) for why in journaler.changes() if why)
        written = (folder / "0000000000000001.journal").read_bytes()
        assert b"0 ours" in written
        assert not [body for body in batch(1) if body in written]
