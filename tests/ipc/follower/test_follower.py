"""Followers: batches of records behind a gate, release, moments, and queues that come and go."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

import pytest

import shmbroker
from shmbroker import Broker, QueueFull
from shmbroker.core.codes import GONE, OK
from shmbroker.core.layout import CHUNK_HEADER_BYTES
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.follower.follower import Batch, Follower
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.replay import Replay
from tests.support.host import PATIENCE, journaling


def bodies(batch: Batch | None) -> list[bytes]:
    assert batch is not None
    return [each.body[CHUNK_HEADER_BYTES:] for each in batch if each.kind == records.MESSAGE]


def read_all(follower: Follower) -> list[bytes]:
    """All that is there, read batch by batch."""
    found = []
    while (batch := follower.read()) is not None:
        found += bodies(batch)
    return found


def test_a_batch_has_the_messages_in_order_with_all_that_they_have(broker: Broker) -> None:
    queue = broker.declare_queue("orders")
    with Follower(broker, "far") as follower:
        number = follower.add(queue)
        for each in range(3):
            queue.publish(b"body %d" % each, key="key", properties={"n": each})
        batch = follower.read()
        assert batch is not None
        assert (batch.records, batch.messages) == (3, 3)
        found = list(batch)
        assert [each.position for each in found] == [0, 1, 2]
        assert {each.queue for each in found} == {number}
        assert all(b"key" in each.body and each.body.endswith(b"%d" % n) for n, each in
                   enumerate(found))  # fmt: skip
        assert follower.read() is None


def test_reading_takes_nothing_and_releasing_makes_room(broker: Broker) -> None:
    queue = broker.declare_queue("orders", slots=4)
    with Follower(broker, "far") as follower:
        number = follower.add(queue)
        for each in range(4):
            queue.publish(b"%d" % each)
            with queue.get(timeout=PATIENCE):
                pass
        assert read_all(follower) == [b"0", b"1", b"2", b"3"]
        with pytest.raises(QueueFull):
            queue.publish(b"4", timeout=0)
        follower.release(number, 2)
        queue.publish(b"4", timeout=0)
        queue.publish(b"5", timeout=0)
        with pytest.raises(QueueFull):
            queue.publish(b"6", timeout=0)
        with pytest.raises(Error, match="not read"):
            follower.release(number, 6)
        assert read_all(follower) == [b"4", b"5"]
        follower.release_all()
        queue.publish(b"6", timeout=0)


def test_it_is_bounded_by_bytes(broker: Broker) -> None:
    queue = broker.declare_queue("orders")
    with Follower(broker, "far", room=1000) as follower:
        follower.add(queue)
        for each in range(10):
            queue.publish(b"%d" % each * 300)
        found = []
        while (batch := follower.read()) is not None:
            assert 1 <= batch.messages <= 2
            found += bodies(batch)
        assert found == [b"%d" % each * 300 for each in range(10)]
        queue.publish(b"x" * 2000)
        with pytest.raises(Error):
            follower.read()


def test_of_a_durable_queue_it_has_what_is_on_disk(broker: Broker, vhost: str,
                                                   tmp_path: Path) -> None:  # fmt: skip
    queue = broker.declare_queue("orders", durable=True)
    with Follower(broker, "far", follows="durable") as follower:
        queue.publish(b"1", confirm="shm")
        assert follower.read() is None
        with journaling(vhost, tmp_path / "journal"):
            queue.confirm(timeout=PATIENCE)
            followed = follower.read()
            assert bodies(followed) == [b"1"]
            assert followed is not None
            (record,) = followed
        with Replay(tmp_path / "journal") as replay:
            written = [each for each in replay if each.kind == records.MESSAGE]
        assert [(each.queue, each.position, bytes(each.body)) for each in written] == [
            (record.queue, record.position, record.body)
        ]


def test_what_is_retired_is_told_if_asked_for(broker: Broker) -> None:
    queue = broker.declare_queue("orders")
    with Follower(broker, "far") as follower:
        follower.add(queue)
        for each in range(5):
            queue.publish(b"%d" % each)
        batch = follower.read(retired=True)
        assert batch is not None
        assert [each.position for each in batch if each.kind == records.RETIRED] == [0]
        held = [queue.get(timeout=PATIENCE) for _ in range(4)]
        for message in held[:2] + held[3:]:
            message.ack()
        follower.release_all()
        batch = follower.read(retired=True)
        assert batch is not None
        (retired,) = batch
        assert (retired.kind, retired.position, retired.body) == (records.RETIRED, 2, b"\2")
        assert follower.read(retired=True) is None
        held[2].ack()


def test_a_lasting_gate_stays_and_a_fleeting_one_goes(broker: Broker, url: str) -> None:
    queue = broker.declare_queue("orders", slots=4)
    with shmbroker.connect(url) as other:
        with Follower(other, "far", kind="replica", lasting=True) as follower:
            number = follower.add(other.queue("orders"))
            queue.publish(b"0")
            queue.publish(b"1")
            assert read_all(follower) == [b"0", b"1"]
            follower.release(number, 1)
            with pytest.raises(Error, match="belongs to participant"):
                Follower(broker, "far", kind="replica", lasting=True).add(queue)
        with Follower(other, "near") as fleeting:
            fleeting.add(other.queue("orders"))
    (gate,) = queue.gates()
    assert (gate.kind, gate.name, gate.owner, gate.position) == ("replica", "far", None, 1)
    again = Follower(broker, "far", kind="replica", lasting=True)
    again.add(queue)
    assert read_all(again) == [b"1"]
    again.close(leaves=True)
    assert queue.gates() == ()


def test_a_queue_that_is_made_again_is_another_one(broker: Broker) -> None:
    with Follower(broker, "far", follows="all", tells=True) as follower:
        broker.declare_queue("orders").publish(b"1")
        batch = follower.read()
        assert batch is not None
        first = [(each.kind, each.queue) for each in batch]
        assert [kind for kind, _ in first] == [records.QUEUE, records.MESSAGE]
        broker.delete_queue("orders", force=True)
        broker.declare_queue("orders").publish(b"2")
        batch = follower.read()
        assert batch is not None
        second = [(each.kind, each.queue) for each in batch]
        assert second[0] == (records.QUEUE_GONE, first[0][1])
        assert [kind for kind, _ in second[1:]] == [records.QUEUE, records.MESSAGE]
        assert second[1][1] == second[2][1] != first[0][1]


def test_a_moment_has_transactions_as_a_whole(broker: Broker, vhost: str, tmp_path: Path) -> None:
    """It is read in pieces, and what comes meanwhile is of the next one."""
    queues = [broker.declare_queue(f"q{each}", durable=True) for each in range(4)]
    with (
        journaling(vhost, tmp_path / "journal"),
        Follower(broker, "far", follows="durable", room=1000) as follower,
    ):
        for times in range(20):
            with broker.transaction() as transaction:
                for queue in queues:
                    transaction.publish(queue, b"%d" % times * 100)
            found: list[bytes] = []
            while (batch := follower.read(moment=True)) is not None:
                found += bodies(batch)
                if batch.whole:
                    break
                with broker.transaction() as transaction:
                    for queue in queues:
                        transaction.publish(queue, b"late")
            assert len(found) % len(queues) == 0
            assert found.count(b"%d" % times * 100) in (0, len(queues))
            follower.release_all()


def test_records_are_not_sealed_and_end_with_zeros(broker: Broker) -> None:
    """Whoever writes them to a file seals them; nobody else looks at a checksum."""
    queue, random = broker.declare_queue("orders"), Random(1)
    with Follower(broker, "far") as follower:
        follower.add(queue)
        for length in (*range(16), 1000, 20_000):
            ffi.buffer(follower._room)[: 1 << 15] = b"\xff" * (1 << 15)
            body = random.randbytes(length)
            queue.publish(body)
            batch = follower.read()
            assert batch is not None
            crc, body_crc, whole, frame = struct.unpack_from("<4L", batch.memory)
            assert (crc, body_crc, frame) == (0, 0, 0)
            assert whole == CHUNK_HEADER_BYTES + length
            assert batch.memory[32 + CHUNK_HEADER_BYTES :] == body + bytes(-length % 8)
            follower.release_all()


def test_a_batch_of_so_many_messages_or_of_one_however_large(broker: Broker) -> None:
    queue = broker.declare_queue("orders")
    with Follower(broker, "far", room=4096) as follower:
        follower.add(queue)
        for each in (b"a", b"b", b"c", bytes(1 << 16), b"d"):
            queue.publish(each)
        assert bodies(follower.read_some(2, 4096)) == [b"a", b"b"]
        assert bodies(follower.read_some(100, 16)) == [b"c"]
        assert bodies(follower.read_some(100, 1024)) == [bytes(1 << 16)]
        assert bodies(follower.read_some(100, 1024)) == [b"d"]
        assert follower.read_some(100, 1024) is None


def test_what_a_link_sets_aside_is_not_lost_though_the_queue_is_paused(broker: Broker) -> None:
    """It would be taken for what somebody has set aside before, and be done with."""
    queue = broker.declare_queue("orders", dead_letter="orders.dead")
    queue.publish(b"refused there")
    queue.pause()
    assert lib.sb_reject_at(queue._queue, 0) == OK
    [message] = broker.queue("orders.dead").browse()
    assert message.body == b"refused there"
    assert queue.statistics().depth == 0


def test_who_is_the_only_consumer_retires(broker: Broker) -> None:
    dead = broker.declare_queue("dead")
    queue = broker.declare_queue("orders", slots=64, dead_letter="dead")
    with Follower(broker, "far", skips=True) as follower:
        number = follower.add(queue)
        for each in range(4):
            queue.publish(b"%d" % each)
        assert lib.sb_reject_at(queue._queue, 1) == OK
        assert lib.sb_reject_at(queue._queue, 1) == GONE  # it is done with already
        assert dead.receive(timeout=0) == b"1"
        assert len(dead) == 0
        assert bodies(follower.read()) == [b"0", b"2", b"3"]
        follower.retire(number, 3)
        place = follower.stands(number)
        assert (place.gate, place.next, place.end) == (3, 4, 4)
        assert [bytes(each) for each in queue.receive_many(9, timeout=0)] == [b"3"]
        assert queue.statistics().dropped == 0


def test_a_queue_that_is_made_again_has_another_identity(broker: Broker) -> None:
    found = set()
    for _ in range(2):
        queue = broker.declare_queue("orders")
        with Follower(broker, "far") as follower:
            found.add(follower.stands(follower.add(queue)).identity)
        queue.delete(force=True)
    assert len(found) == 2
