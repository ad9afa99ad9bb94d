"""A second copy is dropped also after the host died: ids and numbers are in the journal."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random

import pytest

import shmbroker
from shmbroker import Queue, Unconfirmed, aio
from shmbroker.core import layout
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.export import compacted
from shmbroker.ipc.journal.replay import Replay, frame_text
from shmbroker.perf.machine.process import Process
from tests.support.host import PATIENCE, after_the_host_died, journaling
from tests.support.killed import KILLS

SMALL = 64 << 10
"""A segment that is full soon."""
WINDOW = 16


def take_all(queue: Queue) -> list[bytes]:
    return [message.body for message in queue.consume(timeout=0)]


def publish(queue: Queue, number: int, body: bytes = b"") -> int | None:
    return queue.publish(body, message_id=f"id-{number}", timeout=PATIENCE)


def test_ids_and_numbers_are_known_after_the_host_died(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        queue = broker.declare_queue("orders", durable=True)
        meter = queue.producer("meter")
        assert queue.publish(b"a", message_id="a", timeout=PATIENCE) == 0
        assert queue.publish(b"a", message_id="a", timeout=PATIENCE) is None
        assert meter.publish(b"1", timeout=PATIENCE) == 1
        assert meter.publish(b"5", sequence=5, timeout=PATIENCE) == 2
        queue.publish(b"b", message_id="b", ttl=3600, key="k", timeout=PATIENCE)
        assert queue.receive(timeout=0) == b"a"  # what has become of the message does not matter
    for epoch in (2, 3):
        with after_the_host_died(vhost, tmp_path, epoch) as broker:
            queue, news = broker.queue("orders"), f"c{epoch}"
            meter = queue.producer("meter")
            for known in ("a", "b"):
                assert queue.publish(b"x", message_id=known, timeout=PATIENCE) is None
            assert meter.last_sequence == 5 + epoch - 2
            assert meter.publish(b"x", sequence=5, timeout=PATIENCE) is None
            assert queue.publish(b"c", message_id=news, timeout=PATIENCE) is not None
            assert queue.publish(b"c", message_id=news, timeout=PATIENCE) is None
            assert meter.publish(b"6", timeout=PATIENCE) is not None
            assert queue.producer("another").last_sequence == 0
            if epoch == 3:
                assert take_all(queue) == [b"1", b"5", b"b", b"c", b"6", b"c", b"6"]


@pytest.mark.parametrize("deaths", ["of the host", "of the broker, then of the host"])
def test_the_last_ids_are_known_and_no_others_through_many_segments(
    vhost: str, tmp_path: Path, deaths: str
) -> None:
    """All messages are consumed, so their segments go; the lists of ids stay, and not for ever."""
    epoch, number = 1, 0
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders", slots=16, durable=True, duplicate_ids=WINDOW)
        broker.declare_queue("others", durable=True)
        lives = 1 if deaths == "of the host" else 5
        for _life in range(lives):
            with journaling(vhost, tmp_path, epoch, SMALL) as journaler:
                for _ in range(20 * WINDOW // lives):
                    publish(queue, number, bytes(3000))
                    queue.producer("meter").publish(b"", timeout=PATIENCE)
                    take_all(queue)
                    number += 1
                assert journaler.statistics().segments < 8
            epoch += 1
    for _death in range(2):
        with after_the_host_died(vhost, tmp_path, epoch, SMALL) as broker:
            queue = broker.queue("orders")
            assert queue.producer("meter").last_sequence == 20 * WINDOW // lives * lives
            for known in range(number - WINDOW, number):
                assert publish(queue, known) is None, known
        epoch += 1
    with after_the_host_died(vhost, tmp_path, epoch, SMALL) as broker:
        queue = broker.queue("orders")
        assert publish(queue, number - WINDOW - 1) is not None
        assert publish(queue, number) is not None
        take_all(queue)


def test_the_lists_are_what_a_segment_begins_with_and_each_id_is_in_one(
    vhost: str, tmp_path: Path
) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        journaling(vhost, tmp_path, 1, SMALL) as journaler,
    ):
        queue = broker.declare_queue("orders", slots=1024, durable=True)
        for number in range(500):
            publish(queue, number, bytes(1000))
        assert journaler.statistics().segments > 8
    with Replay(tmp_path) as replay:
        found = [record for record in replay if record.kind == records.IDS]
    begun = [record for record in found if record.serial > 1]
    assert all(frame_text(each.frame) == f"{each.serial:x}:1" for each in begun)
    hashes = [
        record.body[at : at + 16] for record in found for at in range(8, len(record.body), 16)
    ]
    assert len(set(hashes)) == len(hashes) > 400


def test_what_the_ring_knows_and_the_journal_has_not_is_forgotten_with_it(
    vhost: str, tmp_path: Path
) -> None:
    """Nobody was told that it is there: publishing it again is no duplicate of nothing."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders", durable=True)
        meter = queue.producer("meter")
        with journaling(vhost, tmp_path, 1):
            publish(queue, 1)
            meter.publish(b"1", timeout=PATIENCE)
        with pytest.raises(Unconfirmed):
            queue.publish(b"", message_id="id-2", timeout=0)
        with pytest.raises(Unconfirmed):
            meter.publish(b"2", timeout=0)
        with pytest.raises(Unconfirmed):  # a duplicate of what is not on disk either
            meter.publish(b"2", sequence=2, timeout=0)
    with after_the_host_died(vhost, tmp_path) as broker:
        queue = broker.queue("orders")
        assert publish(queue, 1) is None
        assert publish(queue, 2) == 2
        assert queue.producer("meter").publish(b"2", sequence=2, timeout=PATIENCE) == 3


def test_a_broker_that_takes_over_lists_what_its_predecessor_did_not(
    vhost: str, tmp_path: Path
) -> None:
    """A message is in the ring and in no frame when it begins: its id is in none of its lists."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders", durable=True, slots=16)
        with journaling(vhost, tmp_path, 1):
            publish(queue, 1)
        queue.publish(b"", message_id="id-2", confirm="shm")
        queue.publish(b"", message_id="id-3", confirm="shm")
        with journaling(vhost, tmp_path, 2):
            publish(queue, 4)
            take_all(queue)
        with journaling(vhost, tmp_path, 3):
            pass
    with after_the_host_died(vhost, tmp_path, 4) as broker:
        queue = broker.queue("orders")
        assert [publish(queue, number) for number in range(1, 6)] == [None] * 4 + [4]


def test_no_frame_lists_the_id_of_a_message_that_is_not_there(vhost: str, tmp_path: Path) -> None:
    """Also when more is in the ring than one frame has, with many ids in it."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders", durable=True)
        for number in range(40):
            queue.publish(bytes(100_000), message_id=f"id-{number}", confirm="shm")
        with journaling(vhost, tmp_path):
            queue.confirm(timeout=PATIENCE)
    there, listed = set[bytes](), set[bytes]()
    with Replay(tmp_path) as replay:
        for record in replay:
            if record.kind == records.MESSAGE:
                there.add(record.body[layout.CHUNK_HEADER_BYTES :][: layout.CHUNK_ONCE_BYTES])
            elif record.kind == records.IDS:
                listed.update(record.body[at : at + 16] for at in range(8, len(record.body), 16))
            if record.last:
                assert listed <= there
    assert len(there) == 40


def test_a_copy_that_was_in_the_ring_takes_no_other_message_s_place(
    vhost: str, tmp_path: Path
) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        queue = broker.declare_queue("orders", durable=True)
        with broker.transaction(timeout=PATIENCE) as tx:
            for body, known in ((b"a", "a"), (b"copy", "a"), (b"b", "b"), (b"c", "c")):
                tx.publish(queue, body, message_id=known)
        held = [queue.get() for _ in range(3)]
        assert [(each.position, each.body) for each in held] == [(0, b"a"), (2, b"b"), (3, b"c")]
        held[1].ack()
    with after_the_host_died(vhost, tmp_path) as broker:
        found = [(each.position, each.body) for each in broker.queue("orders").browse()]
        assert found == [(0, b"a"), (3, b"c")]


def test_compacting_keeps_what_is_remembered(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path, 1, SMALL):
        queue = broker.declare_queue("orders", durable=True, slots=16)
        for number in range(200):
            publish(queue, number, bytes(1000))
            queue.producer("meter").publish(b"", timeout=PATIENCE)
            take_all(queue)
    for _ in range(2):
        compacted(tmp_path, noted=lambda _: None, segment_bytes=SMALL)
    with after_the_host_died(vhost, tmp_path) as broker:
        queue = broker.queue("orders")
        assert [publish(queue, number) for number in range(200)] == [None] * 200
        assert queue.producer("meter").last_sequence == 200
        assert publish(queue, 200) is not None


def test_with_asyncio(vhost: str, tmp_path: Path) -> None:
    async def session() -> None:
        async with await aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.declare_queue("orders", durable=True)
            meter = queue.producer("meter")
            with pytest.raises(Unconfirmed):
                await meter.publish(b"1", timeout=0.01)
            waits = asyncio.create_task(meter.publish(b"1", sequence=1, timeout=PATIENCE))
            with journaling(vhost, tmp_path):
                assert await waits is None
                assert queue.confirmed == 1
                assert await meter.publish(b"2", confirm="shm") == 1

    asyncio.run(session())


# --- kill -9 ------------------------------------------------------------------------------------


def test_each_message_of_a_producer_that_tries_again_is_consumed_once(
    vhost: str, tmp_path: Path
) -> None:
    """Killed at any moment, with the host every fifth time; it does again what it knows not of."""
    random = Random(7)
    told, journal, epoch = tmp_path / "told", tmp_path / "journal", 1
    consumed: Counter[bytes] = Counter()

    def produce(begun: int) -> int:
        """Go on behind the last that we were told of, as it stands in a file."""
        with shmbroker.connect(f"shm://{vhost}") as broker, told.open("a") as told_of:
            queue = broker.queue("orders")
            meter = queue.producer("meter")
            number = len(told.read_text()) + 1
            os.write(begun, b"!")
            while True:
                if number % 2:
                    queue.publish(b"%d" % number, message_id=f"{number}", timeout=PATIENCE)
                else:
                    meter.publish(b"%d" % number, sequence=number, timeout=PATIENCE)
                told_of.write(".")
                told_of.flush()
                number += 1

    told.touch()
    with shmbroker.connect(f"shm://{vhost}") as broker:
        broker.declare_queue("orders", slots=4096, durable=True, max_deliveries=None)
    for kill in range(KILLS):
        host_dies = kill % 5 == 4
        context = (
            journaling(vhost, journal, epoch, SMALL)
            if kill % 5 or kill == 0
            else after_the_host_died(vhost, journal, epoch, SMALL)
        )
        epoch += 1
        with context, shmbroker.connect(f"shm://{vhost}") as broker:
            begun, say = os.pipe()
            process = Process(partial(produce, say), tmp_path / "errors")
            os.close(say)
            try:
                assert os.read(begun, 1), process.errors.read_text()
                assert not process.has_ended(random.uniform(0, 0.02)), process.errors.read_text()
            finally:
                process.kill()
                os.close(begun)
            if not host_dies:  # else the last acknowledgements might come again
                consumed.update(take_all(broker.queue("orders")))
    with after_the_host_died(vhost, journal, epoch, SMALL) as broker:
        consumed.update(take_all(broker.queue("orders")))
    sent = len(told.read_text())
    assert sent > KILLS
    assert set(consumed.values()) == {1}
    assert sent <= len(consumed) <= sent + 1
    assert set(consumed) == {b"%d" % number for number in range(1, len(consumed) + 1)}
