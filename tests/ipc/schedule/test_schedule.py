"""A scheduled message is delivered when its time has come: not before, once, whoever dies."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from struct import Struct
from threading import Timer

import pytest

import shmbroker
from shmbroker import Broker, ConnectionForked, Empty, InvalidArgument, Queue, QueueFull, aio
from shmbroker.core.codes import OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.schedule.scheduled import ring_of
from shmbroker.perf.machine.process import Process
from tests.support.killed import KILLS
from tests.support.stopped import stop
from tests.support.victim import Confirm, dying

SOON = 0.01
LATER = 1.0
"""Long enough to do something before."""
WEEK = 7 * 86400.0
PATIENCE = 60.0
NUMBERED = Struct("<qd")
SHM = Path("/dev/shm")


@pytest.fixture
def orders(broker: Broker) -> Queue:
    return broker.declare_queue("orders")


def times(queue: Queue) -> list[bytes]:
    return [message.body for message in queue.scheduled()]


def test_it_is_delivered_then_and_not_before(orders: Queue) -> None:
    begin = time.monotonic()
    for body, delay in ((b"third", 3), (b"first", 1), (b"second", 2)):
        orders.publish(body, deliver_after=max(0.0, begin + delay * LATER - time.monotonic()))
    for count, body in enumerate((b"first", b"second", b"third"), start=1):
        assert orders.receive(timeout=PATIENCE) == body
        assert time.monotonic() - begin >= count * LATER


@pytest.mark.parametrize("what", ["seconds", "datetime"])
def test_at_a_time_of_day(orders: Queue, what: str) -> None:
    at = time.time() + LATER
    orders.publish(b"x", deliver_at=at if what == "seconds" else datetime.fromtimestamp(at, UTC))
    (waiting,) = orders.scheduled()
    assert abs(waiting.deliver_at.timestamp() - at) < 1e-5
    assert orders.receive(timeout=PATIENCE) == b"x"
    assert time.time() >= at - 1e-6


def test_what_is_over_is_delivered_at_once(orders: Queue) -> None:
    orders.publish(b"a", deliver_after=0)
    orders.publish(b"b", deliver_at=0)
    orders.publish(b"c", deliver_at=datetime.now(UTC) - timedelta(days=1))
    assert orders.receive_many(8, timeout=0) == [b"a", b"b", b"c"]


def test_what_is_over_has_no_id_of_another(orders: Queue) -> None:
    later = orders.publish(b"later", deliver_after=100)
    orders.publish(b"position 0")
    over = orders.publish(b"position 1", deliver_at=0)
    assert (later, over) == (1, 0)
    assert not orders.cancel_scheduled(over)
    assert [each.body for each in orders.scheduled()] == [b"later"]


def test_all_of_a_message_comes_along(orders: Queue) -> None:
    orders.publish(
        b"x" * 5000,
        key="eu.de",
        properties={"n": 1, "text": "\xe4"},
        priority=7,
        ttl=60,
        deliver_after=2 * LATER,
    )
    (waiting,) = orders.scheduled()
    assert (waiting.key, waiting.properties["n"], waiting.priority) == ("eu.de", 1, 7)
    assert waiting.body == b"x" * 5000
    with orders.get(timeout=PATIENCE) as message:
        assert (message.key, message.properties) == ("eu.de", {"n": 1, "text": "\xe4"})
        assert (message.body, message.deliveries) == (b"x" * 5000, 0)
        (copied,) = orders.browse()
        assert copied.priority == 7
        assert copied.expires_ns > time.monotonic_ns() + 50e9


def test_it_lives_from_its_time_on(orders: Queue) -> None:
    orders.publish(b"x", ttl=60, deliver_after=WEEK)
    (waiting,) = orders.scheduled()
    left = (waiting.expires_ns - time.monotonic_ns()) / 1e9
    assert WEEK < left <= WEEK + 60


def test_one_after_the_other(orders: Queue) -> None:
    """Of the same time, in the order of publishing."""
    at = time.time() + 2 * LATER
    for number in range(100):
        orders.publish(bytes([number]), deliver_at=at)
    bodies: list[bytes] = []
    while len(bodies) < 100:
        bodies += orders.receive_many(100, timeout=PATIENCE)
    assert bodies == [bytes([number]) for number in range(100)]


def test_it_wakes_who_waits_for_something_earlier(orders: Queue) -> None:
    orders.publish(b"later", deliver_after=WEEK)
    orders.publish(b"sooner", deliver_after=SOON)
    assert orders.receive(timeout=PATIENCE) == b"sooner"
    assert times(orders) == [b"later"]


def test_one_that_comes_while_another_is_moved(orders: Queue) -> None:
    for _ in range(300):
        for number in range(4):
            orders.publish(b"%d" % number, deliver_after=1e-9)
        end = time.monotonic() + PATIENCE
        while orders.statistics().depth < 4:
            assert time.monotonic() < end, "nobody moves the last ones"
        assert sorted(orders.receive_many()) == [b"0", b"1", b"2", b"3"]


def test_through_an_exchange(broker: Broker) -> None:
    exchange = broker.declare_exchange("news", "fanout")
    for name in ("a", "b"):
        broker.declare_queue(name)
        broker.bind("news", name)
    assert exchange.publish(b"x", deliver_after=SOON) == 2
    for name in ("a", "b"):
        assert broker.queue(name).receive(timeout=PATIENCE) == b"x"


def test_in_a_transaction(broker: Broker, orders: Queue) -> None:
    with broker.transaction() as tx:
        tx.publish(orders, b"x", deliver_after=SOON)
        tx.publish(orders, b"now")
        assert orders.scheduled() == []
    assert orders.receive(timeout=PATIENCE) == b"now"
    assert orders.receive(timeout=PATIENCE) == b"x"
    with pytest.raises(RuntimeError), broker.transaction() as tx:
        tx.publish(orders, b"x", deliver_after=SOON)
        raise RuntimeError
    assert orders.scheduled() == []


def test_they_are_listed_and_cancelled(orders: Queue) -> None:
    ids = [orders.publish(bytes([each]), deliver_after=WEEK - each) for each in range(10)]
    assert len(set(ids)) == 10
    assert [each.id for each in orders.scheduled()] == ids[::-1]
    assert orders.statistics().scheduled == 10
    assert orders.cancel_scheduled(ids[3])
    assert not orders.cancel_scheduled(ids[3])
    assert ids[3] not in [each.id for each in orders.scheduled()]
    assert orders.statistics().scheduled == 9
    for unknown in (0, -1, 99, 1 << 70):
        assert not orders.cancel_scheduled(unknown)
    for wrong in ("1", 1.0, None, True):
        with pytest.raises(InvalidArgument):
            orders.cancel_scheduled(wrong)  # type: ignore[arg-type]


def test_a_queue_without_any(orders: Queue) -> None:
    assert orders.scheduled() == []
    assert not orders.cancel_scheduled(1)
    assert orders.statistics().scheduled == 0


def test_purge_and_delete_take_them_along(broker: Broker, orders: Queue, vhost: str) -> None:
    orders.publish(b"x")
    orders.publish(b"y", deliver_after=WEEK)
    assert orders.purge() == 2
    assert orders.scheduled() == []
    orders.publish(b"z", deliver_after=WEEK)
    assert [queue.name for queue in broker.queues()] == ["orders"]
    broker.delete_queue("orders")
    assert list(SHM.glob(f"shmbroker.{vhost}.queue-*")) == []
    assert broker.declare_queue("orders").scheduled() == []


def test_a_queue_with_some_is_in_use(broker: Broker) -> None:
    """It is not deleted by itself before they are delivered."""
    brief = broker.declare_queue("brief", auto_delete=True, auto_delete_delay=SOON)
    brief.publish(b"x", deliver_after=4 * SOON)
    with shmbroker.connect(f"shm://{broker.vhost}") as repairing:
        ends_at = time.monotonic() + 3 * SOON
        while time.monotonic() < ends_at:
            repairing.repair_for(timeout=0)
    assert brief.receive(timeout=PATIENCE) == b"x"


def test_nor_by_who_does_not_know_its_schedule(broker: Broker) -> None:
    brief = broker.declare_queue("brief", auto_delete=True, auto_delete_delay=0.001)
    brief.publish(b"x", deliver_after=WEEK)
    with shmbroker.connect(f"shm://{broker.vhost}") as other:
        waiting = other.declare_queue("other")
        with pytest.raises(Empty):
            waiting.get(timeout=0.15)  # long enough to look after all queues
    assert times(brief) == [b"x"]


def test_so_many_may_be_scheduled(broker: Broker) -> None:
    few = broker.declare_queue("few", max_scheduled=8, when_full="fail")
    ids = [few.publish(b"x", deliver_after=WEEK) for _ in range(8)]
    with pytest.raises(QueueFull, match="max_scheduled"):
        few.publish(b"x", deliver_after=WEEK)
    few.publish(b"but this")
    assert few.cancel_scheduled(ids[4])
    few.publish(b"x", deliver_after=WEEK)
    waits = broker.declare_queue("waits", max_scheduled=1)
    first = waits.publish(b"first", deliver_after=WEEK)
    with pytest.raises(QueueFull, match="max_scheduled"):
        waits.publish(b"x", deliver_after=WEEK, timeout=SOON)
    makes_room = Timer(SOON, waits.cancel_scheduled, (first,))
    makes_room.start()
    waits.publish(b"second", deliver_after=SOON, timeout=PATIENCE)
    makes_room.join()
    assert waits.receive(timeout=PATIENCE) == b"second"


def test_old_ones_are_not_in_the_way(broker: Broker) -> None:
    """One in the ring holds all behind it: it is published anew."""
    few = broker.declare_queue("few", max_scheduled=30, when_full="fail")
    stay = [few.publish(bytes([each]), deliver_after=WEEK + each) for each in range(25)]
    for _ in range(500):
        assert few.cancel_scheduled(few.publish(b"x", deliver_after=WEEK))
    assert [each.id for each in few.scheduled()] == stay
    assert [each.body for each in few.scheduled()] == [bytes([each]) for each in range(25)]
    few.publish(b"soon", deliver_after=SOON)
    assert few.receive(timeout=PATIENCE) == b"soon"


@pytest.mark.parametrize("most", [2, 3, 5, 6, 11, 12])
def test_nor_in_that_of_a_few(broker: Broker, most: int) -> None:
    few = broker.declare_queue("few", max_scheduled=most, when_full="fail")
    few.publish(b"stays", deliver_after=3600)
    for _ in range(40):
        assert few.cancel_scheduled(few.publish(b"goes", deliver_after=3600))
    assert [each.body for each in few.scheduled()] == [b"stays"]


def test_bytes_are_limited_too(broker: Broker) -> None:
    small = broker.declare_queue("small", max_bytes=65536, when_full="fail")
    with pytest.raises(QueueFull):
        for _ in range(100):
            small.publish(bytes(4096), deliver_after=WEEK)
    assert 0 < small.statistics().scheduled < 17


def test_a_full_queue_gets_them_when_there_is_room(broker: Broker) -> None:
    tight = broker.declare_queue("tight", slots=4)
    for _ in range(4):
        tight.publish(b"before")
    for number in range(8):
        tight.publish(bytes([number]), deliver_after=SOON)
    for _ in range(4):
        assert tight.receive(timeout=PATIENCE) == b"before"
    assert [tight.receive(timeout=PATIENCE) for _ in range(8)] == [bytes([n]) for n in range(8)]


def test_one_that_a_commit_let_in_comes_back_after_its_delay(broker: Broker) -> None:
    queue = broker.declare_queue("q", max_bytes=4096, redelivery_delay=SOON)
    with broker.transaction() as tx:
        tx.publish(queue, bytes(10_000))  # a commit does not look at max_bytes
    queue.get_nowait().give_back()
    queue.publish(b"small", deliver_after=2 * SOON)
    assert len(queue.receive(timeout=PATIENCE)) == 10_000
    assert queue.receive(timeout=PATIENCE) == b"small"


def test_the_oldest_make_room_by_their_bytes(broker: Broker) -> None:
    queue = broker.declare_queue("q", max_bytes="64KiB", when_full="drop-oldest")
    for _ in range(100):
        queue.publish(bytes(1000))
    queue.publish(b"scheduled", deliver_after=SOON)
    while [each.body for each in queue.browse()][-1] != b"scheduled":
        time.sleep(SOON)


def test_a_ring_queue_drops_its_oldest_for_them(broker: Broker) -> None:
    newest = broker.declare_queue("newest", slots=4, when_full="drop-oldest")
    for _ in range(4):
        newest.publish(b"old")
    newest.publish(b"due", deliver_after=SOON)
    while newest.statistics().scheduled:
        time.sleep(0.001)
    assert [newest.receive() for _ in range(4)] == [b"old", b"old", b"old", b"due"]


@pytest.mark.parametrize(
    "bad",
    [
        {"deliver_after": float("nan")},
        {"deliver_after": -1},
        {"deliver_after": 1e12},
        {"deliver_after": "1"},
        {"deliver_after": True},
        {"deliver_at": float("nan")},
        {"deliver_at": float("inf")},
        {"deliver_at": -1.0},
        {"deliver_at": 1e18},
        {"deliver_at": 10**400},
        {"deliver_at": "tomorrow"},
        {"deliver_at": datetime.max},
        {"deliver_after": 1, "deliver_at": 1},
    ],
)
def test_what_is_no_time(orders: Queue, bad: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        orders.publish(b"x", **bad)  # type: ignore[arg-type]
    assert orders.scheduled() == []
    assert orders.statistics().depth == 0


async def _in_asyncio(url: str) -> None:
    async with await aio.connect(url) as broker:
        orders = await broker.declare_queue("orders", max_scheduled=2)
        getting = asyncio.create_task(orders.receive())
        await orders.publish(b"x", deliver_after=2 * SOON)
        await orders.publish(b"y", deliver_after=SOON)
        await orders.publish(b"z", deliver_at=time.time() + SOON, timeout=PATIENCE)
        assert {await getting, await orders.receive(), await orders.receive()} == {b"x", b"y", b"z"}
        number = await orders.publish(b"x", deliver_after=WEEK)
        assert [each.id for each in await orders.scheduled()] == [number]
        with pytest.raises(QueueFull):
            await orders.publish(b"x", deliver_after=WEEK)
            await orders.publish(b"x", deliver_after=WEEK, timeout=SOON)
        assert await orders.cancel_scheduled(number)


def test_asyncio(vhost: str) -> None:
    asyncio.run(_in_asyncio(f"shm://{vhost}"))


# --- whoever leaves, stops or dies ----------------------------------------------------------------


def test_its_publisher_may_leave(vhost: str, orders: Queue) -> None:
    with shmbroker.connect(f"shm://{vhost}", name="publisher") as other:
        other.queue("orders").publish(b"x", deliver_after=4 * SOON)
    assert orders.receive(timeout=PATIENCE) == b"x"


def test_who_only_looks_now_and_then_gets_it(vhost: str, orders: Queue) -> None:
    with shmbroker.connect(f"shm://{vhost}", name="publisher") as other:
        other.queue("orders").publish(b"x", deliver_after=SOON)
    ends_at = time.monotonic() + PATIENCE
    while time.monotonic() < ends_at:
        try:
            assert orders.receive(timeout=0) == b"x"
        except Empty:
            continue
        return
    raise AssertionError("it was not delivered")


def test_who_repairs_moves_what_nobody_waits_for(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as other:
        other.declare_queue("orders").publish(b"x", deliver_after=SOON)
    with (
        shmbroker.connect(f"shm://{vhost}", observe=True) as looking,
        shmbroker.connect(f"shm://{vhost}", name="repairer") as repairer,
    ):
        ends_at = time.monotonic() + PATIENCE
        while looking.queue("orders").statistics().depth == 0:
            repairer.repair_for(timeout=SOON)
            assert time.monotonic() < ends_at
        with shmbroker.connect(f"shm://{vhost}") as other:
            other.delete_queue("orders")  # it only serves: it is no user


def schedules(vhost: str, count: int) -> int:
    """The mover of what it schedules, until it is killed."""
    with shmbroker.connect(f"shm://{vhost}", name="mover") as broker:
        orders = broker.queue("orders")
        for number in range(count):
            orders.publish(NUMBERED.pack(number, 0), deliver_after=SOON * (1 + number % 10))
        signal.pause()
    return 0


def test_its_mover_may_be_stopped(vhost: str, orders: Queue, tmp_path: Path) -> None:
    mover = Process(lambda: schedules(vhost, 500), tmp_path / "errors")
    random, got = Random(5), []
    try:
        while len(got) < 500:
            stop(mover.pid)
            time.sleep(random.uniform(0, 0.02))
            with suppress(Empty):
                got += [NUMBERED.unpack(body)[0] for body in orders.receive_many(64, timeout=0.1)]
            os.kill(mover.pid, signal.SIGCONT)
            time.sleep(random.uniform(0, 0.002))
    finally:
        os.kill(mover.pid, signal.SIGCONT)
        mover.kill()
    assert sorted(got) == list(range(500))


def test_it_is_delivered_whoever_is_killed(vhost: str, orders: Queue, tmp_path: Path) -> None:
    """Each at most once, the confirmed ones surely, and none before its time."""
    random, first_number = Random(7), 0
    seen: dict[int, int] = {}

    def work(broker: Broker, confirm: Confirm) -> None:
        number = first_number
        queue, random = broker.queue("orders"), Random(number)
        while True:
            delay = random.uniform(0, 0.004)
            queue.publish(NUMBERED.pack(number, time.monotonic() + delay), deliver_after=delay)
            confirm(number)
            number += 1

    def take(timeout: float) -> None:
        for body in orders.receive_many(256, timeout=timeout):
            number, due = NUMBERED.unpack(body)
            assert time.monotonic() >= due
            seen[number] = seen.get(number, 0) + 1

    for _ in range(KILLS):
        with dying(vhost, work, tmp_path, random) as confirmed:
            pass
        ends_at = time.monotonic() + PATIENCE
        while not seen.keys() >= set(confirmed):
            assert time.monotonic() < ends_at, sorted(set(confirmed) - seen.keys())
            take(PATIENCE)
        while orders.statistics().scheduled or orders.statistics().depth:
            with suppress(Empty):
                take(0.01)
            assert time.monotonic() < ends_at
        first_number += 1 << 20  # one that is just being moved is seen in the next round
    assert set(seen.values()) == {1}
    assert len(seen) > 2 * KILLS, "they had no time to do anything"


def test_what_a_stopped_process_had_taken_is_moved_by_others(
    vhost: str, orders: Queue, tmp_path: Path
) -> None:
    def take() -> int:
        with shmbroker.connect(f"shm://{vhost}") as broker:
            port, message = ffi.new("sb_port **"), ffi.new("sb_message *")
            (tmp_path / "ready").touch()
            while (ring := ring_of(broker.queue("orders"))) is None:
                time.sleep(0.001)
            assert lib.sb_queue_port(ring, port) == OK
            while lib.sb_port_take(port[0], message) != OK:
                time.sleep(0.001)
            (tmp_path / "taken").touch()
            signal.pause()
        return 0

    def await_its(sign: str) -> None:
        while not (tmp_path / sign).exists():
            assert not stopped.has_ended(0.001), stopped.errors.read_text()

    stopped = Process(take, tmp_path / "errors")
    try:
        await_its("ready")
        orders.publish(b"x", deliver_after=2 * LATER)  # it looks all the time: before us
        await_its("taken")
        stopped.stop()
        assert orders.receive(timeout=PATIENCE) == b"x"
    finally:
        stopped.kill()
    with pytest.raises(Empty):
        orders.receive(timeout=SOON)


def test_a_fork_has_no_mover(vhost: str, orders: Queue, broker: Broker, tmp_path: Path) -> None:
    orders.publish(b"x", deliver_after=LATER)

    def close() -> int:
        with pytest.raises(ConnectionForked):
            orders.publish(b"y", deliver_after=SOON)
        broker.close()
        return 0

    child = Process(close, tmp_path / "errors")
    assert child.has_ended(PATIENCE)
    assert child.status == 0, child.errors.read_text()
    assert orders.receive(timeout=PATIENCE) == b"x"
    assert orders.scheduled() == []


def test_a_schedule_goes_with_its_queue_whoever_is_killed(
    vhost: str, broker: Broker, tmp_path: Path
) -> None:
    random, made = Random(11), 0

    def work(mine: Broker, confirm: Confirm) -> None:
        while True:
            queue = mine.declare_queue("brief", slots=4, max_scheduled=4)
            queue.publish(b"x", deliver_after=WEEK)
            mine.delete_queue("brief")
            confirm(0)

    for _ in range(KILLS):
        with dying(vhost, work, tmp_path, random) as confirmed:
            pass
        made += len(confirmed)
        broker.repair()
        broker.declare_queue("brief", slots=4, max_scheduled=4)
        broker.delete_queue("brief", force=True)
        assert list(SHM.glob(f"shmbroker.{vhost}.queue-*")) == []
    assert made, "they had no time to do anything"


# --- clocks ---------------------------------------------------------------------------------------

CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

/* CLOCK_REALTIME is so many nanoseconds ahead as the file says that CLOCK_AHEAD names. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    static volatile int64_t *ahead;
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (!ahead)
        ahead = mmap(NULL, 8, PROT_READ, MAP_SHARED, open(getenv("CLOCK_AHEAD"), O_RDONLY), 0);
    int code = real(clock, now);
    if (clock == CLOCK_REALTIME) {
        int64_t ns = now->tv_sec * INT64_C(1000000000) + now->tv_nsec + *ahead;
        now->tv_sec = ns / 1000000000;
        now->tv_nsec = ns % 1000000000;
    }
    return code;
}
"""

STEPPED = """
import os, sys, time
import shmbroker
from shmbroker import Empty

vhost = sys.argv[1]

def ahead(seconds):
    with open(os.environ["CLOCK_AHEAD"], "r+b") as file:
        file.write(int(seconds * 1e9).to_bytes(8, "little", signed=True))

with shmbroker.connect(f"shm://{vhost}") as broker:
    orders = broker.declare_queue("orders")
    begin = time.monotonic()
    orders.publish(b"by day", deliver_at=time.time() + 3600, ttl=60)
    orders.publish(b"by clock", deliver_after=0.5)
    orders.publish(b"by day, too early", deliver_at=time.time() + 1.0)
    ahead(-60)
    try:
        while True:
            body = orders.receive(timeout=1.0)
            assert (body, time.monotonic() - begin >= 0.5) == (b"by clock", True), body
    except Empty:
        pass
    ahead(3600)
    assert orders.receive(timeout=10) == b"by day, too early"
    message = orders.get(timeout=10)
    assert message.body == b"by day"
    assert message.expires_at.timestamp() <= time.time() + 60
    assert time.monotonic() - begin < 60
    begin = time.time()
    orders.publish(b"later", deliver_at=time.time() + 0.1, ttl=60)
    ahead(3600 - 0.3)
    assert orders.get(timeout=10).expires_at.timestamp() - begin >= 60.05
"""


def test_the_clock_is_set(vhost: str, tmp_path: Path) -> None:
    """Times of day go by the clock as it is then, delays do not."""
    (tmp_path / "clock.c").write_text(CLOCK)
    library = tmp_path / "clock.so"
    command = ["cc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "clock.c"), "-ldl"]
    subprocess.run(command, check=True)
    (tmp_path / "ahead").write_bytes(bytes(8))
    environment = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "CLOCK_AHEAD": str(tmp_path / "ahead"),
    }
    subprocess.run([sys.executable, "-c", STEPPED, vhost], env=environment, check=True, timeout=60)
