"""Latency of a queue: recorded by whoever acknowledges, in whatever way."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

import shmbroker
from shmbroker import aio
from shmbroker.core import layout

SHM = Path("/dev/shm")
MANY = 3 * layout.STRIPES


@pytest.fixture
def queue(broker: shmbroker.Broker) -> shmbroker.Queue:
    made = broker.declare_queue("orders", slots=64)
    made.latency(True)
    return made


def totals(queue: shmbroker.Queue) -> tuple[int, int]:
    found = queue.histograms()
    return found["publish-take"].total, found["take-ack"].total


def test_nothing_is_recorded_and_nothing_is_made_unless_it_is_switched_on(
    broker: shmbroker.Broker, vhost: str
) -> None:
    queue = broker.declare_queue("orders")
    queue.publish(b"a")
    queue.get().ack()
    assert queue.histograms() == {}
    assert queue.statistics().latency is None
    assert not queue.statistics().is_recorded
    assert not list(SHM.glob(f"shmbroker.{vhost}.latency*"))


def test_every_way_to_acknowledge_counts_each_message_once(queue: shmbroker.Queue) -> None:
    queue.publish_many([b"x"] * 20)
    queue.get().ack()
    with queue.get():
        pass
    assert queue.receive() == b"x"
    assert len(queue.receive_many(3)) == 3
    for message in queue.get_many(2):
        message.ack()
    for number, _ in enumerate(queue.consume(timeout=0, prefetch=4), 1):
        if number == 4:
            break
    selected = queue.consume(selector="JMSPriority = 4", timeout=0)
    next(selected)
    next(selected)  # the first is acknowledged
    selected.close()  # and the second given back
    assert queue.statistics().acked == 12
    assert totals(queue) == (12, 12)
    assert queue.statistics().is_recorded


def test_a_message_that_comes_back_is_counted_when_it_is_done_with(queue: shmbroker.Queue) -> None:
    queue.publish(b"x")
    for _ in range(3):
        queue.get().give_back()
    assert totals(queue) == (0, 0)
    queue.get().ack()
    assert totals(queue) == (1, 1)


def test_the_times_are_those_that_passed(queue: shmbroker.Queue) -> None:
    published = time.time_ns()
    queue.publish(b"x")
    time.sleep(0.02)
    before = time.monotonic_ns()
    message = queue.get()
    taken = time.time_ns()
    time.sleep(0.03)
    message.ack()
    in_hand = time.monotonic_ns() - before
    found = queue.histograms()
    assert 20e6 * 0.99 < found["publish-take"].maximum < (taken - published) * 1.02 + 1e4
    assert 30e6 * 0.99 < found["take-ack"].maximum < in_hand * 1.02 + 1e4
    statistics = queue.statistics().latency
    assert statistics is not None
    assert statistics.samples == 1
    assert statistics.max_ns == found["publish-take"].maximum


def test_off_keeps_what_was_recorded_and_on_goes_on_with_it(queue: shmbroker.Queue) -> None:
    queue.publish_many([b"x"] * 4)
    queue.get().ack()
    queue.latency(False)
    queue.get().ack()
    assert totals(queue) == (1, 1)
    queue.latency(True)
    queue.get().ack()
    assert totals(queue) == (2, 2)


def test_switched_on_while_a_message_is_in_hand(queue: shmbroker.Queue) -> None:
    queue.latency(False)
    queue.publish(b"x")
    message = queue.get()
    queue.latency(True)
    message.ack()
    assert totals(queue) == (0, 0)


def test_another_range_begins_anew(queue: shmbroker.Queue, vhost: str) -> None:
    queue.publish_many([b"x"] * 3)
    queue.get().ack()
    queue.latency(True, highest=1.0, digits=3)
    assert totals(queue) == (0, 0)
    queue.get().ack()
    queue.latency(True)  # the same, as nothing else is said
    queue.get().ack()
    assert totals(queue) == (2, 2)
    range_ = queue.histograms()["take-ack"].range
    assert (range_.lowest, range_.highest, range_.digits) == (1, 10**9, 3)
    assert len(list(SHM.glob(f"shmbroker.{vhost}.latency*"))) == 1


def test_times_beyond_the_range_are_told(queue: shmbroker.Queue) -> None:
    queue.latency(True, highest=1e-6)
    queue.publish(b"x")
    message = queue.get()
    time.sleep(0.001)
    message.ack()
    found = queue.histograms()["take-ack"]
    assert (found.total, found.overflow) == (0, 1)


@pytest.mark.parametrize(
    "asked",
    [
        {"digits": 1}, {"digits": 4}, {"digits": 2.5}, {"highest": 0}, {"highest": -1},
        {"lowest": 0}, {"lowest": 1.0, "highest": 1.5}, {"highest": 1e9}, {"lowest": "a"},
    ],
)  # fmt: skip
def test_ranges_that_there_cannot_be(queue: shmbroker.Queue, asked: dict[str, float]) -> None:
    with pytest.raises(shmbroker.InvalidArgument):
        queue.latency(True, **asked)  # type: ignore[arg-type]
    assert queue.histograms()["take-ack"].range.digits == 2


def test_more_threads_than_stripes_lose_nothing(queue: shmbroker.Queue) -> None:
    """Each has a message in hand, so each needs a lane of its own to take the next."""
    each = 20
    ready = threading.Barrier(MANY)

    def work() -> None:
        ready.wait()
        for _ in range(each):
            queue.publish(b"x")
            with queue.get():
                pass

    threads = [threading.Thread(target=work) for _ in range(MANY)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert totals(queue) == (MANY * each, MANY * each)


def test_more_consumers_than_stripes_count_in_one_that_is_everybodys(
    queue: shmbroker.Queue, vhost: str
) -> None:
    others = [shmbroker.connect(f"shm://{vhost}") for _ in range(layout.STRIPES + 3)]
    for other in others:
        mine = other.queue("orders")
        for _ in range(3):
            mine.publish(b"x")
            mine.get().ack()
    assert totals(queue) == (3 * len(others), 3 * len(others))
    for other in others:
        other.close()
    queue.publish(b"x")
    queue.get().ack()
    assert totals(queue) == (3 * len(others) + 1, 3 * len(others) + 1)


def test_who_leaves_leaves_a_stripe_to_others(queue: shmbroker.Queue, vhost: str) -> None:
    for _ in range(2 * layout.STRIPES):
        with shmbroker.connect(f"shm://{vhost}") as other:
            mine = other.queue("orders")
            mine.publish(b"x")
            mine.get().ack()
    segment = next(SHM.glob(f"shmbroker.{vhost}.latency*"))
    with segment.open("rb") as file:
        file.seek(layout.HISTOGRAMS_STRIPES_AT)
        words = memoryview(file.read(layout.STRIPES * layout.PAIR_BYTES)).cast("q")
    step = layout.PAIR_BYTES // 8
    assert [words[step * stripe] for stripe in range(layout.STRIPES)] == [0] * layout.STRIPES
    kinds = sum(words[step * stripe + 1] for stripe in range(layout.STRIPES))
    assert kinds == 2 * layout.KINDS_COMMITTED, "everybody's, and one for all of them"


def test_compiled_loops_are_recorded(queue: shmbroker.Queue) -> None:
    from shmbroker.ipc._native import ffi, lib

    queue.publish_many([b"x"] * 2)
    port = queue.port()
    message = ffi.new("sb_message *")
    for _ in range(2):
        assert lib.sb_port_take(ffi.cast("sb_port *", port.address), message) == 0
        assert lib.sb_port_ack(ffi.cast("sb_port *", port.address), message) == 0
    assert totals(queue) == (2, 2)
    port.close()
    queue.publish(b"x")
    queue.get().ack()
    assert totals(queue) == (3, 3)


def test_asyncio_has_it_too(vhost: str) -> None:
    async def play() -> tuple[int, int]:
        async with aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.declare_queue("later")
            await queue.latency(True)
            await queue.publish(b"x")
            async with await queue.get():
                pass
            found = await queue.histograms()
            return found["publish-take"].total, found["take-ack"].total

    assert asyncio.run(play()) == (1, 1)


def test_a_queue_that_is_deleted_takes_its_histograms_with_it(
    broker: shmbroker.Broker, queue: shmbroker.Queue, vhost: str
) -> None:
    queue.publish(b"x")
    queue.get().ack()
    broker.delete_queue("orders")
    assert not list(SHM.glob(f"shmbroker.{vhost}.latency*"))
    with pytest.raises(shmbroker.NotFound):
        queue.histograms()


def test_an_observer_reads_and_does_not_switch(queue: shmbroker.Queue, vhost: str) -> None:
    queue.publish(b"x")
    queue.get().ack()
    with shmbroker.connect(f"shm://{vhost}", observe=True) as observer:
        seen = observer.queue("orders")
        assert totals(seen) == (1, 1)
        with pytest.raises(shmbroker.InvalidArgument):
            seen.latency(False)


@pytest.mark.parametrize("damage", [b"", b"x" * 100, bytes(20_000), b"\xff" * 20_000])
def test_histograms_that_are_damaged_cost_the_figures_and_no_message(
    queue: shmbroker.Queue, vhost: str, damage: bytes
) -> None:
    queue.publish_many([b"x"] * 2)
    segment = next(SHM.glob(f"shmbroker.{vhost}.latency*"))
    segment.unlink()
    segment.write_bytes(damage)
    queue.get().ack()
    assert queue.receive() == b"x"
    with pytest.raises(shmbroker.Error, match="latency"):
        queue.histograms()
    queue.latency(True)  # they cannot be used: new ones
    queue.publish(b"x")
    queue.get().ack()
    assert totals(queue) == (1, 1)


@pytest.mark.parametrize("many", [False, True])
def test_one_in_so_many_is_recorded(queue: shmbroker.Queue, many: bool) -> None:
    queue.latency(True, one_in=16)
    for _ in range(64):
        queue.publish_many([b"x"] * 32)
        if many:
            assert len(queue.receive_many(32)) == 32
        else:
            for _ in range(32):
                queue.get().ack()
    total = queue.histograms()["take-ack"].total
    assert abs(total - 64 * 32 / 16) <= 8  # the places are spread evenly, not every 16th
    queue.latency(True)
    for _ in range(10):
        queue.publish(b"x")
        queue.get().ack()
    assert queue.histograms()["take-ack"].total == total + 10


def test_who_is_not_sampled_does_not_get_the_time_of_who_had_the_slot(
    broker: shmbroker.Broker,
) -> None:
    queue = broker.declare_queue("small", slots=16, max_deliveries=None)
    queue.latency(True)
    for _ in range(16):
        queue.publish(b"x")
        queue.get().reject()  # never acknowledged: the slot keeps when it was taken
    queue.latency(True, one_in=65536)
    for _ in range(16):
        queue.publish(b"x")
        queue.get().ack()
    assert queue.histograms()["take-ack"].total == 0


@pytest.mark.parametrize("one_in", [0, -1, 3, 131072, 1.0, "2"])
def test_what_one_in_so_many_cannot_be(queue: shmbroker.Queue, one_in: object) -> None:
    with pytest.raises(shmbroker.InvalidArgument, match="one"):
        queue.latency(True, one_in=one_in)  # type: ignore[arg-type]
