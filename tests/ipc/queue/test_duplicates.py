"""Duplicates: a message with an id, or with a producer's number, is there once."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any, Literal

import pytest

import shmbroker
from shmbroker import aio
from shmbroker.core import layout
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.queue.export import exported, imported
from shmbroker.perf.machine.process import Process
from tests.support.killed import KILLS, victims


@pytest.fixture
def queue(broker: shmbroker.Broker) -> shmbroker.Queue:
    return broker.declare_queue("q", slots=64)


def bodies(queue: shmbroker.Queue) -> list[bytes]:
    return [message.body for message in queue.consume(timeout=0)]


# --- ids ------------------------------------------------------------------------------------------


def test_the_second_copy_is_dropped_and_told(queue: shmbroker.Queue) -> None:
    assert queue.publish(b"first", message_id="a1") == 0
    assert queue.publish(b"second", message_id="a1") is None
    assert queue.publish(b"other", message_id="a2") == 1
    assert queue.statistics().duplicates == 1
    assert queue.statistics().published == 2
    assert bodies(queue) == [b"first", b"other"]
    assert queue.publish(b"third", message_id="a1") is None  # also when it is no longer there


@pytest.mark.parametrize("known", ["a1", b"a1", "ä" * 127, "x" * 255, bytes(range(255)), b"\0"])
def test_an_id_comes_as_it_went(queue: shmbroker.Queue, known: str | bytes) -> None:
    queue.publish(b"x", message_id=known)
    assert queue.publish(b"y", properties={"s": "x" * 2000}, message_id=known) is None
    (copied,) = queue.browse()
    assert (copied.message_id, copied.body) == (known, b"x")
    with queue.get(timeout=0) as message:
        assert (message.message_id, message.body) == (known, b"x")


def test_beside_what_else_a_message_has(queue: shmbroker.Queue) -> None:
    long = "x" * 3000
    queue.publish(
        b"body", key="k", properties={"n": 1, "s": long}, ttl=60, priority=3, message_id="a1"
    )
    (copied,) = queue.browse()
    assert (copied.key, copied.body, copied.priority) == ("k", b"body", 3)
    assert copied.properties == {"n": 1, "s": long, "JMSMessageID": "a1"}
    assert copied.expires_ns > 0
    with queue.get(timeout=0) as message:
        assert (message.key, message.view[:], message.message_id) == ("k", b"body", "a1")


def test_text_and_bytes_are_the_same_id(queue: shmbroker.Queue) -> None:
    queue.publish(b"x", message_id="a1")
    assert queue.publish(b"x", message_id=b"a1") is None


def test_without_an_id_there_is_none(queue: shmbroker.Queue) -> None:
    queue.publish(b"x")
    (copied,) = queue.browse()
    assert copied.message_id is None
    with queue.get(timeout=0) as message:
        assert message.message_id is None


@pytest.mark.parametrize("wrong", ["", b"", "x" * 256, b"x" * 256, "ä" * 128, 5, 1.5, bytearray(1)])
def test_an_id_of_the_wrong_kind_or_size(broker: shmbroker.Broker, wrong: Any) -> None:
    queue = broker.declare_queue("q")
    calls = [
        lambda: queue.publish(b"x", message_id=wrong),
        lambda: queue.loan(1, message_id=wrong),
        lambda: broker.exchange("").publish(b"x", key="q", message_id=wrong),
        lambda: broker.transaction().publish(queue, b"x", message_id=wrong),
        lambda: queue.producer(wrong),
    ]
    for call in calls:
        with pytest.raises(shmbroker.InvalidArgument, match=r"text or bytes|1 to 255 bytes"):
            call()
    assert queue.statistics().depth == 0


def test_the_last_so_many_are_remembered(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=8, duplicate_ids=3)
    for each in "abc":
        queue.publish(b"x", message_id=each)
    assert [queue.publish(b"x", message_id=each) for each in "abc"] == [None, None, None]
    queue.publish(b"x", message_id="d")
    assert [queue.publish(b"x", message_id=each) for each in "bcd"] == [None, None, None]
    assert queue.publish(b"x", message_id="a") == 4


def test_many_ids_in_many_laps(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=4, duplicate_ids=50)
    for number in range(1000):
        assert queue.publish(b"%d" % number, message_id=f"id {number}") is not None
        assert queue.publish(b"x", message_id=f"id {max(0, number - 49)}") is None
        assert queue.receive(timeout=0) == b"%d" % number
    assert queue.statistics().duplicates == 1000
    assert queue.statistics().acked == 1000


def test_20_000_are_remembered_by_default(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=4)
    assert queue.explain()["duplicate_ids"].value == layout.DUPLICATE_IDS == 20_000
    for number in range(20_000):
        queue.publish(b"", message_id=f"id {number}")
        queue.receive(timeout=0)
    assert queue.publish(b"", message_id="id 0") is None
    queue.publish(b"", message_id="one more")
    assert queue.publish(b"", message_id="id 0") is not None
    assert queue.publish(b"", message_id="id 2") is None


def test_ids_that_are_not_looked_at(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", duplicate_ids=0)
    queue.publish(b"x", message_id="a1")
    queue.publish(b"y", message_id="a1")
    assert [each.message_id for each in queue.browse()] == ["a1", "a1"]
    assert queue.statistics().duplicates == 0


def test_by_pattern(broker: shmbroker.Broker) -> None:
    broker.settings("orders.#", duplicate_ids=1)
    queue = broker.declare_queue("orders.eu")
    assert queue.explain()["duplicate_ids"].source == "pattern 'orders.#'"
    queue.publish(b"x", message_id="a")
    queue.publish(b"x", message_id="b")
    assert queue.publish(b"x", message_id="a") == 2


@pytest.mark.parametrize("wrong", [-1, 1.5, None, "many", True, layout.DUPLICATE_IDS_MAX + 1])
def test_a_wrong_setting(broker: shmbroker.Broker, wrong: Any) -> None:
    with pytest.raises(shmbroker.InvalidArgument, match="duplicate_ids"):
        broker.declare_queue("q", duplicate_ids=wrong)


def test_a_queue_without_ids_takes_no_memory_for_them(vhost: str, broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=4)
    (ring,) = Path("/dev/shm").glob(f"shmbroker.{vhost}.queue-0-*")
    before = ring.stat().st_blocks
    queue.publish(b"x")
    queue.producer("p").publish(b"x")
    assert ring.stat().st_blocks == before
    queue.publish(b"x", message_id="a1")
    assert ring.stat().st_blocks > before


def test_a_full_queue_is_no_reason_to_wait_with_a_duplicate(broker: shmbroker.Broker) -> None:
    for name, settings in (("a", {}), ("b", {"max_messages": 2}), ("c", {"max_bytes": 512})):
        queue = broker.declare_queue(name, slots=2 if name == "a" else 8, **settings)
        number = 0
        with pytest.raises(shmbroker.QueueFull):
            while True:
                queue.publish(b"x" * 100, message_id=f"{number}", timeout=0)
                number += 1
        assert number > 0
        assert queue.publish(b"x", message_id="0") is None
        queue.receive(timeout=0)
        assert queue.publish(b"x" * 100, message_id=f"{number}", timeout=0) is not None


def test_what_is_dropped_expires_or_dies_was_there(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=8, dead_letter="dead")
    queue.publish(b"rejected", message_id="a1")
    queue.get(timeout=0).reject()
    queue.publish(b"expired", message_id="a2", ttl=1e-9)
    queue.publish(b"purged", message_id="a3")
    queue.purge()
    assert [queue.publish(b"x", message_id=each) for each in ("a1", "a2", "a3")] == [None] * 3
    dead = broker.queue("dead")
    (letter,) = dead.browse()
    assert letter.message_id == "a1"
    assert dead.retry().sent == 1  # it keeps its id, which is not looked at
    with queue.get(timeout=0) as message:
        assert (message.body, message.message_id) == (b"rejected", "a1")


def test_moving_keeps_the_id_and_does_not_look_at_it(broker: shmbroker.Broker) -> None:
    here, there = broker.declare_queue("here"), broker.declare_queue("there")
    here.publish(b"x", message_id="a1")
    there.publish(b"y", message_id="a1")
    assert here.copy_to(there) == 1
    assert here.move_to(there) == 1
    assert [(each.body, each.message_id) for each in there.browse()] == [
        (b"y", "a1"), (b"x", "a1"), (b"x", "a1"),
    ]  # fmt: skip


def test_export_and_import_keep_it(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q")
    queue.publish(b"x", message_id="a1")
    queue.publish(b"y", message_id=b"\xff")
    lines = list(exported(queue))
    queue.purge()
    assert imported(queue, lines) == 2
    assert [each.message_id for each in queue.browse()] == ["a1", b"\xff"]


def test_an_exchange_asks_each_queue(broker: shmbroker.Broker) -> None:
    fan = broker.declare_exchange("fan", "fanout")
    first, second = broker.declare_queue("first"), broker.declare_queue("second")
    broker.bind("fan", "first")
    fan.publish(b"x", message_id="a1")
    broker.bind("fan", "second")
    assert fan.publish(b"x", message_id="a1", mandatory=True) == 2
    assert (first.statistics().depth, second.statistics().depth) == (1, 1)
    assert first.statistics().duplicates == 1


def test_a_transaction_leaves_out_what_is_there(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=8)
    with broker.transaction(warn=False) as tx:
        tx.publish(queue, b"1", message_id="a1")
        tx.publish(queue, b"2", message_id="a1")
        tx.publish(queue, b"3")
        assert queue.publish(b"0", message_id="a1") == 0
    assert bodies(queue) == [b"0", b"3"]
    assert queue.statistics().duplicates == 2
    rolled_back = broker.transaction()
    rolled_back.publish(queue, b"4", message_id="a2")
    rolled_back.rollback()
    assert queue.publish(b"5", message_id="a2") is not None


@pytest.mark.parametrize("when", [{"deliver_after": 1}, {"deliver_at": 0}])
def test_what_is_scheduled_has_none(
    broker: shmbroker.Broker, queue: shmbroker.Queue, when: dict[str, Any]
) -> None:
    with pytest.raises(shmbroker.InvalidArgument, match="a message that is scheduled has no id"):
        queue.publish(b"x", message_id="a", **when)
    with broker.transaction() as transaction, pytest.raises(shmbroker.InvalidArgument):
        transaction.publish(queue, b"x", message_id="a", **when)
    assert not bodies(queue)
    assert not queue.scheduled()


def test_loans(queue: shmbroker.Queue) -> None:
    held = [queue.loan(1, message_id="a1") for _ in range(3)]
    for number, loan in enumerate(held):
        loan.view[:] = b"%d" % number
    assert held[2].publish() == 0
    assert held[1].publish() is None
    with held[0]:
        pass
    assert held[0].position is None
    assert not held[0].is_open
    assert bodies(queue) == [b"2"]
    assert queue.publish(b"x") == 1  # their lanes are free
    assert queue.statistics().duplicates == 2


@pytest.mark.parametrize("when_full", ["block", "drop-oldest"])
def test_a_loan_that_is_a_duplicate_needs_no_room(
    broker: shmbroker.Broker, when_full: Literal["block", "drop-oldest"]
) -> None:
    queue = broker.declare_queue("q", slots=8, max_messages=1, when_full=when_full)
    queue.publish(b"1", message_id="a1")
    loan = queue.loan(1, message_id="a1")
    loan.view[:] = b"2"
    assert loan.publish(timeout=0) is None
    assert bodies(queue) == [b"1"]


def test_subscribers_and_browsers_see_it_once(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=16)
    with (
        broker.subscribe("q") as subscription,
        broker.subscribe("q", lossy=True) as lossy,
        broker.transaction() as tx,
    ):
        for number in range(3):  # these get into the ring, and one counts
            tx.publish(queue, b"%d" % number, message_id="a1")
        tx.publish(queue, b"end")
        tx.commit()
        assert [each.body for each in queue.browse()] == [b"0", b"end"]
        for each in (subscription, lossy):
            assert [next(each).body for _ in range(2)] == [b"0", b"end"]


def test_selectors_and_priorities(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=16, priorities=True)
    with broker.transaction() as tx:
        tx.publish(queue, b"low", priority=1, message_id="a1")
        tx.publish(queue, b"high", priority=9, message_id="a1")
        tx.publish(queue, b"mid", priority=5, message_id="b1")
    assert [level.waiting for level in queue.statistics().levels if level.waiting] == [1, 1]
    selected = queue.consume(selector="JMSMessageID LIKE 'b%'", timeout=0)
    assert [each.body for each in selected] == [b"mid"]
    assert bodies(queue) == [b"low"]


def test_c_programs(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q")
    body, known = ffi.from_buffer(b"body"), ffi.from_buffer(b"a1")
    outgoing = ffi.new("sb_outgoing *", {"body": body, "length": 4, "id": known, "id_length": 2})
    assert lib.sb_publish_message(queue._queue, outgoing, 0) == 0
    assert lib.sb_publish_message(queue._queue, outgoing, 0) == lib.SB_DUPLICATE
    message, length = ffi.new("sb_message *"), ffi.new("int64_t *")
    assert lib.sb_get(queue._queue, message, 0) == 0
    text = lib.sb_message_id(message, length)
    assert ffi.buffer(text, length[0])[:] == b"a1"
    lib.sb_ack(queue._queue, message)
    producer = lib.sb_producer_open(queue._queue, known, 2)
    outgoing.producer, outgoing.sequence = producer, 7
    assert lib.sb_publish_message(queue._queue, outgoing, 0) == lib.SB_INVALID  # an id as well
    outgoing.id_length = 0
    assert lib.sb_publish_message(queue._queue, outgoing, 0) >= 0
    assert lib.sb_producer_sequence(queue._queue, producer) == 7
    assert lib.sb_publish_message(queue._queue, outgoing, 0) == lib.SB_DUPLICATE
    for wrong in (-1, 64, 1 << 40):
        outgoing.producer = wrong
        assert lib.sb_publish_message(queue._queue, outgoing, 0) == lib.SB_INVALID
        assert lib.sb_producer_sequence(queue._queue, wrong) == lib.SB_INVALID


def test_a_producer_is_one_queues(broker: shmbroker.Broker) -> None:
    """Its number is another queue's series of transactions."""
    queue, paid = broker.declare_queue("q"), broker.declare_queue("paid")
    with broker.transaction() as transaction:
        for number in range(5):
            transaction.publish(paid, b"%d" % number)
    name = ffi.from_buffer(b"meter")
    producer = lib.sb_producer_open(queue._queue, name, 5)
    outgoing = ffi.new("sb_outgoing *", {"producer": producer, "sequence": 1})
    for number in (producer, 7):
        outgoing.producer = number
        assert lib.sb_publish_message(paid._queue, outgoing, 0) == lib.SB_INVALID
    outgoing.producer = lib.sb_producer_open(paid._queue, name, 5)
    assert lib.sb_publish_message(paid._queue, outgoing, 0) == 5


# --- named producers ------------------------------------------------------------------------------


def test_a_producer_numbers_its_messages(queue: shmbroker.Queue) -> None:
    producer = queue.producer("meter-7")
    assert producer.last_sequence == 0
    assert [producer.publish(b"a"), producer.publish(b"b")] == [0, 1]
    assert producer.last_sequence == 2
    assert producer.publish(b"b", sequence=2) is None
    assert producer.publish(b"a", sequence=1) is None
    assert producer.publish(b"z", sequence=26) == 2  # numbers may be left out
    assert producer.publish(b"c", sequence=3) is None
    assert queue.producer("meter-7").last_sequence == 26
    assert queue.producer("meter-8").last_sequence == 0
    assert bodies(queue) == [b"a", b"b", b"z"]
    assert queue.statistics().duplicates == 3


def test_a_new_program_goes_on_under_the_same_name(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as first:
        first.declare_queue("q").producer("p").publish(b"1", sequence=1)
    with shmbroker.connect(f"shm://{vhost}") as second:
        producer = second.queue("q").producer("p")
        assert producer.last_sequence == 1
        assert producer.publish(b"1", sequence=1) is None
        assert producer.publish(b"2", sequence=2) == 1


def test_a_producer_needs_no_memory_of_ids(broker: shmbroker.Broker) -> None:
    producer = broker.declare_queue("q", duplicate_ids=0).producer("p")
    assert producer.publish(b"x", sequence=5) == 0
    assert producer.publish(b"x", sequence=5) is None


@pytest.mark.parametrize("wrong", [0, -1, 1 << 48, 1.5, "1", True])
def test_a_wrong_number(queue: shmbroker.Queue, wrong: Any) -> None:
    with pytest.raises(shmbroker.InvalidArgument, match="a sequence is a number"):
        queue.producer("p").publish(b"x", sequence=wrong)


def test_a_queue_knows_55_producers_and_still_commits(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=8)
    for number in range(55):
        queue.producer(f"p{number}")
    with pytest.raises(shmbroker.InvalidArgument, match="knows 55 named producers"):
        queue.producer("one more")
    queue.producer("p0").publish(b"p0")
    with broker.transaction() as tx:
        tx.publish(queue, b"tx")
    assert bodies(queue) == [b"p0", b"tx"]


def test_a_full_queue_and_a_producer(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=2)
    producer = queue.producer("p")
    producer.publish(b"1")
    producer.publish(b"2")
    with pytest.raises(shmbroker.QueueFull):
        producer.publish(b"3", timeout=0)
    assert producer.last_sequence == 2
    assert producer.publish(b"2", sequence=2, timeout=0) is None
    queue.receive(timeout=0)
    producer.publish(b"3", timeout=0)
    assert producer.last_sequence == 3


def test_threads_share_a_producer(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=1024)
    producer = queue.producer("p")

    def work() -> None:
        for _ in range(100):
            assert producer.publish(b"x") is not None

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert producer.last_sequence == 400
    assert queue.statistics().depth == 400


# --- asyncio --------------------------------------------------------------------------------------


def test_asyncio(vhost: str) -> None:
    async def main() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.declare_queue("q", slots=8)
            assert await queue.publish(b"a", message_id="a1") == 0
            assert await queue.publish(b"b", message_id="a1") is None
            async with queue.loan(1, message_id="a1") as loan:
                loan.view[:] = b"c"
            assert loan.position is None
            exchange = await broker.exchange("")
            assert await exchange.publish(b"d", key="q", message_id="a1") == 1
            async with broker.transaction() as tx:
                tx.publish(queue, b"e", message_id="a1")
            producer = queue.producer("p")
            assert await producer.publish(b"f") is not None
            assert await producer.publish(b"f", sequence=1) is None
            assert producer.last_sequence == 1
            assert producer.name == "p"
            assert [each.body async for each in queue.consume(timeout=0)] == [b"a", b"f"]

    asyncio.run(main())


# --- at once, and killed --------------------------------------------------------------------------


def test_several_programs_publish_the_same_at_once(tmp_path: Path, vhost: str) -> None:
    url = f"shm://{vhost}"
    with shmbroker.connect(url) as broker:
        queue = broker.declare_queue("q", slots=4096)
        start = broker.declare_queue("start")

        def publish_all() -> int:
            with shmbroker.connect(url) as mine:
                mine.queue("start").publish(b"ready")
                for number in range(2000):
                    mine.queue("q").publish(b"%d" % number, message_id=f"id {number}")
            return 0

        racers = [Process(publish_all, tmp_path / f"errors{each}") for each in range(3)]
        for racer in racers:
            assert racer.has_ended(30)
            assert racer.status == 0, racer.errors.read_text()
        assert start.statistics().depth == 3
        assert [int(each) for each in bodies(queue)] == list(range(2000))
        assert queue.statistics().duplicates == 4000


class Progress:
    """The number that is to be published next, in a file: what a program knows that comes after."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT)

    def next(self) -> int:
        return int.from_bytes(os.pread(self._file, 8, 0), "little")

    def done(self, number: int) -> None:
        os.pwrite(self._file, (number + 1).to_bytes(8, "little"), 0)


def test_exactly_once_although_publishers_are_killed(tmp_path: Path, vhost: str) -> None:
    """Two publish the same ids at the same time, and one is killed; the next one tries again."""
    url = f"shm://{vhost}"
    progress = Progress(tmp_path / "progress")

    def publish_next(broker: shmbroker.Broker) -> None:
        number = progress.next()
        broker.queue("q").publish(b"%d" % number, message_id=f"id {number}", timeout=1)
        progress.done(number)

    def rival() -> int:
        with shmbroker.connect(url, name="rival") as broker:
            while True:
                number = progress.next()
                for each in range(max(0, number - 2), number + 2):
                    broker.queue("q").publish(b"%d" % each, message_id=f"id {each}")

    with shmbroker.connect(url) as broker:
        queue = broker.declare_queue("q", slots=256)
        other = Process(rival, tmp_path / "rival")
        found: list[int] = []
        try:
            for _number, _victim in victims(url, tmp_path, publish_next, seed=12):
                found += [int(body) for body in bodies(queue)]
            other.kill()
        finally:
            other.kill()
        publish_next(broker)
        found += [int(body) for body in bodies(queue)]
        assert len(found) > KILLS
        assert len(found) == len(set(found)), "twice"
        assert set(range(progress.next())) <= set(found), "lost"
        assert queue.statistics().depth == 0


def test_a_producer_that_is_killed_goes_on_exactly(tmp_path: Path, vhost: str) -> None:
    url = f"shm://{vhost}"

    def publish_next(broker: shmbroker.Broker) -> None:
        producer = broker.queue("q").producer("p")
        number = producer.last_sequence + 1
        producer.publish(b"%d" % number, sequence=number, timeout=1)
        if number > 1:  # and what was perhaps not confirmed once more
            assert producer.publish(b"%d" % number, sequence=number - 1) is None

    with shmbroker.connect(url) as broker:
        queue = broker.declare_queue("q", slots=256)
        found: list[int] = []
        for _number, _victim in victims(url, tmp_path, publish_next, seed=13):
            found += [int(body) for body in bodies(queue)]
        assert len(found) > KILLS
        assert found == list(range(1, len(found) + 1))
        assert queue.producer("p").last_sequence == len(found)


def test_consumers_are_killed_while_duplicates_come(tmp_path: Path, vhost: str) -> None:
    """Who dies with a duplicate in hand leaves it to the next one, who drops it as well."""
    url = f"shm://{vhost}"
    confirmed = tmp_path / "confirmed"
    sent = 0

    def take(broker: shmbroker.Broker) -> None:
        with broker.queue("q").get(timeout=None) as message, confirmed.open("ab") as file:
            file.write(message.body + b"\n")

    with shmbroker.connect(url) as broker:
        queue = broker.declare_queue("q", slots=256, max_deliveries=None)
        with broker.transaction() as tx:
            tx.publish(queue, b"first")
        sent = 1
        for _number, _victim in victims(url, tmp_path, take, seed=14):
            with broker.transaction() as tx:  # so they get into the ring
                for _ in range(3):
                    tx.publish(queue, b"%d" % sent, message_id=f"id {sent}")
                tx.publish(queue, b"more of %d" % sent)
            sent += 1
        left = bodies(queue)
        taken = confirmed.read_bytes().split() if confirmed.exists() else []
        numbers = [int(each) for each in left if each.isdigit()]
        assert len(numbers) == len(set(numbers))
        assert taken or left
        assert queue.statistics().duplicates == 2 * KILLS
