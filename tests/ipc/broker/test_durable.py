"""Durable queues: confirmed is on disk, only that is delivered, and the host may die.

"The host dies" is: the vhost's memory is deleted, in the middle of whatever goes on, and made anew
from the journal.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import select
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, Empty, InvalidArgument, Unconfirmed, aio
from shmbroker.core import layout
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.replay import Replay
from shmbroker.perf.machine.process import Process
from tests.support.host import PATIENCE, after_the_host_died, journaling

# --- confirms -----------------------------------------------------------------------------------


def test_nothing_is_confirmed_or_delivered_before_it_is_on_disk(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    queue = broker.declare_queue("orders", durable=True)
    with pytest.raises(Unconfirmed, match="is a broker running"):
        queue.publish(b"first", timeout=0.01)
    assert queue.publish(b"second", confirm="shm") == 1
    assert queue.confirmed == 0
    with pytest.raises(Empty):
        queue.get(timeout=0.01)
    assert list(queue.browse()) == []
    assert [each.body for each in queue.browse(unconfirmed=True)] == [b"first", b"second"]
    with journaling(vhost, tmp_path):
        queue.confirm(timeout=PATIENCE)
        assert queue.confirmed == 2
        assert queue.publish(b"third", timeout=PATIENCE) == 2
        assert [queue.receive(timeout=0) for _ in range(3)] == [b"first", b"second", b"third"]


def test_values_are_let_go_of_with_the_newer_ones(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    """Also if these are more than a frame usually has: what is killed behind it loses no key."""
    queue, many = broker.declare_queue("prices", durable=True, last_value=True), 200

    def publish_all() -> None:
        for key in range(many):
            queue.publish(bytes(8000), key=str(key), confirm="shm")

    with journaling(vhost, tmp_path):
        publish_all()
        queue.confirm(timeout=PATIENCE)
    publish_all()
    with journaling(vhost, tmp_path, epoch=2):
        queue.confirm(timeout=PATIENCE)
    with Replay(tmp_path) as replay:
        kept = [each for each in replay if each.position >= many]
    written = [each.frame for each in kept if each.kind == records.MESSAGE]
    retired = [each.frame for each in kept if each.kind == records.RETIRED]
    assert len(written) == many
    assert max(written) <= min(retired)


def test_who_waits_is_woken_when_it_is_on_disk(broker: Broker, vhost: str, tmp_path: Path) -> None:
    queue = broker.declare_queue("orders", durable=True)
    seen: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: seen.append(queue.receive(timeout=PATIENCE))),
        threading.Thread(target=lambda: queue.publish(b"x", timeout=PATIENCE)),
        threading.Thread(
            target=lambda: seen.extend(
                message.body
                for message in itertools.islice(
                    queue.consume(selector="$priority = 7", timeout=PATIENCE), 1
                )
            )
        ),
        threading.Thread(target=lambda: queue.publish(b"y", priority=7, timeout=PATIENCE)),
    ]
    for thread in threads:
        thread.start()
    with journaling(vhost, tmp_path):
        for thread in threads:
            thread.join(PATIENCE)
    assert set(seen) <= {b"x", b"y"}
    assert seen


def test_what_is_restored_is_not_paused(broker: Broker, vhost: str, tmp_path: Path) -> None:
    queue = broker.declare_queue("orders", durable=True)
    with journaling(vhost, tmp_path):
        queue.pause()
        queue.publish(b"x", timeout=PATIENCE)
    with journaling(vhost, tmp_path, epoch=2):
        assert queue.is_paused, "another broker has the same memory"
    with after_the_host_died(vhost, tmp_path, epoch=3) as again:
        assert not again.queue("orders").is_paused
        assert again.queue("orders").receive(timeout=PATIENCE) == b"x"


def test_confirms_are_awaitable(vhost: str, tmp_path: Path) -> None:
    async def session() -> None:
        async with await aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.declare_queue("orders", durable=True)
            with pytest.raises(Unconfirmed):
                await queue.publish(b"first", timeout=0.01)
            position = queue.publish_nowait(b"second")
            waits = asyncio.create_task(queue.confirm(position))
            publishes = asyncio.create_task(queue.publish(b"third"))
            cancelled = asyncio.create_task(queue.publish(b"fourth"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            cancelled.cancel()
            with journaling(vhost, tmp_path):
                await asyncio.wait_for(waits, PATIENCE)
                assert await asyncio.wait_for(publishes, PATIENCE) == 2
                assert await queue.publish_many([b"5", b"6"], timeout=PATIENCE) == 2
                assert queue.confirmed == 6
            with pytest.raises(asyncio.CancelledError):
                await cancelled

    asyncio.run(session())


def test_a_queue_that_is_not_durable_confirms_nothing(broker: Broker) -> None:
    queue = broker.declare_queue("q")
    with pytest.raises(InvalidArgument, match="not durable"):
        queue.publish(b"x", confirm="disk")
    with pytest.raises(InvalidArgument, match="not durable"):
        queue.confirm(timeout=0)
    with pytest.raises(InvalidArgument, match="not durable"):
        _ = queue.confirmed
    assert queue.publish(b"x", confirm="shm") == 0


def test_two_journalers_never_work_at_once(broker: Broker, vhost: str, tmp_path: Path) -> None:
    broker.declare_queue("orders", durable=True)
    with (
        journaling(vhost, tmp_path / "one"),
        pytest.raises(shmbroker.Error, match="already"),
        journaling(vhost, tmp_path / "other"),
    ):
        pass


# --- after the host died ------------------------------------------------------------------------


def test_everything_is_there_again(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        queue = broker.declare_queue(
            "orders", durable=True, slots=64, priorities=True, dead_letter="orders.dead", ttl=3600
        )
        broker.declare_queue("passing")
        broker.declare_exchange("late", kind="fanout")
        broker.declare_exchange("events", kind="topic", alternate="late")
        broker.bind("events", "orders", key="orders.#")
        broker.bind("events", "passing", key="orders.#")
        queue.publish(b"0", timeout=PATIENCE)
        queue.publish(b"1", key="k", properties={"n": 1}, priority=9, timeout=PATIENCE)
        queue.publish_many([b"2", b"3", b"4"], timeout=PATIENCE)
        with queue.get() as message:
            assert message.body == b"1"
        held = queue.get_many(2)
        assert [message.body for message in held] == [b"0", b"2"]
        held[1].ack()
        held[0].give_back()
    with after_the_host_died(vhost, tmp_path) as broker:
        queue = broker.queue("orders")
        assert {each.name for each in broker.queues()} == {"orders", "orders.dead"}
        explained = queue.explain()
        assert explained["ttl"].value == 3600
        assert explained["dead_letter"].value == "orders.dead"
        assert queue.publish(b"5", timeout=PATIENCE) == 5  # positions go on
        found = [(message.body, message.deliveries) for message in queue.consume(timeout=0)]
        assert found == [(b"0", 1), (b"3", 1), (b"4", 1), (b"5", 0)]
        assert broker.exchange("events").publish(b"6", key="orders.new") == 1
        assert queue.receive(timeout=PATIENCE) == b"6"


def test_a_deleted_queue_stays_deleted_also_under_its_old_name(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        broker.declare_queue("gone", durable=True).publish(b"x", timeout=PATIENCE)
        broker.declare_queue("again", durable=True).publish(b"old", timeout=PATIENCE)
        broker.delete_queue("gone")
        broker.delete_queue("again")
        broker.declare_queue("again", durable=True).publish(b"new", timeout=PATIENCE)
    with after_the_host_died(vhost, tmp_path) as broker:
        assert [each.name for each in broker.queues()] == ["again"]
        assert [each.body for each in broker.queue("again").browse()] == [b"new"]


def test_a_segment_is_kept_for_one_queue_and_those_behind_it_are_gone_for_another(
    vhost: str, tmp_path: Path
) -> None:
    segment = 64 << 10
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        journaling(vhost, tmp_path, 1, segment) as journaler,
    ):
        broker.declare_queue("slow", durable=True).publish(b"kept", timeout=PATIENCE)
        queue = broker.declare_queue("busy", durable=True, slots=16)
        for _ in range(300):
            queue.publish(bytes(1000), timeout=PATIENCE)
            queue.receive(timeout=PATIENCE)
        assert journaler.statistics().segments < 5
    with after_the_host_died(vhost, tmp_path) as broker:
        assert broker.queue("slow").receive(timeout=PATIENCE) == b"kept"
        assert broker.queue("busy").publish(b"", timeout=PATIENCE) == 300


@pytest.mark.parametrize("seed", range(6))
def test_what_was_confirmed_and_not_acknowledged_is_there(
    vhost: str, tmp_path: Path, seed: int
) -> None:
    """Random work on several queues, through many segments, deaths of the host in between."""
    random = Random(seed)
    there: dict[str, dict[int, bytes]] = {}
    epoch = 1
    for _life in range(4):
        with ExitStack() as stack:
            if epoch == 1:
                broker = stack.enter_context(shmbroker.connect(f"shm://{vhost}"))
                stack.enter_context(journaling(vhost, tmp_path, epoch))
            else:
                broker = stack.enter_context(after_the_host_died(vhost, tmp_path, epoch))
            epoch += 1
            assert {each.name for each in broker.queues()} == set(there)
            for name, messages in there.items():
                found = {each.position: each.body for each in broker.queue(name).browse()}
                assert found == messages, name
            for _ in range(300):
                name = random.choice("abc")
                queue = broker.declare_queue(name, slots=16, durable=True, max_deliveries=None)
                messages = there.setdefault(name, {})
                what = random.random()
                if what < 0.5 and queue.statistics().depth < 12:
                    body = random.randbytes(random.choice((0, 10, 3000)))
                    messages[queue.publish(body, timeout=PATIENCE)] = body
                elif what < 0.98 and messages:
                    held = queue.get_many(random.randint(1, 5), timeout=PATIENCE)
                    random.shuffle(held)
                    for message in held:
                        if random.random() < 0.7:
                            del messages[message.position]
                            message.ack()
                        else:
                            message.give_back()
                elif what > 0.99:
                    broker.delete_queue(name)
                    del there[name]


@pytest.mark.parametrize("settings", [{"max_deliveries": 1}, {"redelivery_delay": 3600.0}])
def test_that_it_may_have_been_delivered_neither_drops_nor_delays_it(
    vhost: str, tmp_path: Path, settings: Any
) -> None:
    """It says so, and once: how often the host died is no number of deliveries."""
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        queue = broker.declare_queue("orders", durable=True, **settings)
        queue.publish(b"plain", timeout=PATIENCE)
        queue.publish(b"with more", ttl=3600, message_id="x", timeout=PATIENCE)
    with after_the_host_died(vhost, tmp_path):
        pass
    with after_the_host_died(vhost, tmp_path, epoch=3) as broker:
        queue = broker.queue("orders")
        queue.publish(b"new", timeout=PATIENCE)
        messages = queue.get_many(3, timeout=PATIENCE)
        assert [(each.body, each.deliveries) for each in messages] == [
            (b"plain", 1), (b"with more", 1), (b"new", 0),
        ]  # fmt: skip
        for message in messages:
            message.give_back()
        with pytest.raises(Empty):
            queue.get(timeout=0)
        seen = queue.statistics()
        is_limited = "max_deliveries" in settings
        assert (seen.dead_lettered, seen.scheduled) == ((3, 0) if is_limited else (0, 3))


def test_a_message_has_room_in_a_record_of_the_journal_and_the_error_says_the_limit(
    vhost: str,
) -> None:
    """With key, properties and header: what can be published can be written, too."""
    with_all = layout.KEY_BYTES_MAX + layout.PROPERTIES_BYTES_MAX + 2 * layout.LINE_BYTES
    assert layout.BODY_BYTES_MAX + with_all <= 1 << 31
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders", durable=True)
        with pytest.raises(shmbroker.MessageTooLarge, match=r"at most \d+ bytes.*a quarter"):
            queue.publish(bytes(17 << 20), timeout=PATIENCE)


def test_a_message_that_is_larger_than_a_segment(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path, 1, 64 << 10):
        queue = broker.declare_queue("orders", durable=True)
        for length in (60 << 10, 64 << 10, 3 << 20):
            queue.publish(bytes(length), timeout=PATIENCE)
    with after_the_host_died(vhost, tmp_path) as broker:
        assert [len(each.body) for each in broker.queue("orders").browse()] == [
            60 << 10,
            64 << 10,
            3 << 20,
        ]


# --- kill -9 ------------------------------------------------------------------------------------


def test_nothing_is_lost_whenever_the_journaler_is_killed(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    """The next one goes on; programs on the same host notice nothing but a pause."""
    queue = broker.declare_queue("orders", slots=64, durable=True)
    random = Random(5)
    sent = itertools.count()
    seen: list[bytes] = []
    done = threading.Event()

    def produce() -> None:
        while not done.is_set():
            queue.publish(b"%d" % next(sent), timeout=PATIENCE)

    def consume() -> None:
        for message in queue.consume(timeout=PATIENCE):
            seen.append(message.body)
            if message.body == b"end":
                return

    threads = [threading.Thread(target=each) for each in (produce, consume)]
    for thread in threads:
        thread.start()
    ready = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    for epoch in range(1, 51):
        with suppress(BlockingIOError):
            os.eventfd_read(ready)

        def write(epoch: int = epoch) -> int:
            with journaling(vhost, tmp_path / "journal", epoch):
                os.eventfd_write(ready, 1)
                threading.Event().wait()
            return 0

        process = Process(write, tmp_path / "errors")
        try:
            if epoch % 2:  # the others may be killed while they begin
                assert select.select([ready], [], [], PATIENCE)[0], process.errors.read_text()
            assert not process.has_ended(random.uniform(0, 0.02)), process.errors.read_text()
        finally:
            process.kill()
    os.close(ready)
    done.set()
    with journaling(vhost, tmp_path / "journal", 51):
        threads[0].join(PATIENCE)
        queue.publish(b"end", timeout=PATIENCE)
        threads[1].join(PATIENCE)
    assert seen == [b"%d" % number for number in range(next(sent))] + [b"end"]


def test_what_expires_leaves_a_queue_that_was_restored(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    """Nobody has published there since, nor taken anything."""
    queue = broker.declare_queue("orders", durable=True, slots=4, expiry_queue="late")
    with journaling(vhost, tmp_path):
        for number in range(4):
            queue.publish(b"%d" % number, ttl=0.2, timeout=PATIENCE)
    broker.close()
    with after_the_host_died(vhost, tmp_path) as again:
        queue = again.queue("orders")
        assert queue.statistics().depth == 4
        deadline = time.monotonic() + PATIENCE
        late = again.queue("late")
        while len(list(late.browse())) < 4:  # they are counted before they are synced and seen
            assert time.monotonic() < deadline
            again.repair_for(timeout=0)
        assert queue.statistics().expired == 4
        assert [each.body for each in late.browse()] == [b"0", b"1", b"2", b"3"]
