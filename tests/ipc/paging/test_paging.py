"""Queues with when_full="page": order, bounded memory, files that are gone when they are read."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from errno import ENOSPC
from pathlib import Path
from random import Random

import pytest

import shmbroker
from shmbroker import Broker, Empty, InvalidArgument, NotFound, Queue, QueueFull, aio
from shmbroker.core.layout import RING_PAGED_NEXT_AT
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import InUse, SystemRefused
from shmbroker.ipc.paging.paged import Paged
from shmbroker.ipc.paging.pager import Pager
from tests.ipc.journal.test_journal_faults import run, storage

__all__ = ["storage"]  # a fixture

SLOTS = 256
PAGE_BYTES = 64 << 10
PATIENCE = 60.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "pages"


@pytest.fixture
def pager(vhost: str, folder: Path) -> Iterator[Pager]:
    with (
        shmbroker.connect(f"shm://{vhost}", name="pager") as theirs,
        Pager(theirs, folder, page_bytes=PAGE_BYTES) as started,
    ):
        yield started


@pytest.fixture
def orders(broker: Broker, pager: Pager) -> Queue:
    return broker.declare_queue("orders", slots=SLOTS, when_full="page")


def number(value: int, random: Random | None = None) -> bytes:
    more = random.randrange(3000) if random else 0
    return value.to_bytes(8, "little") + bytes(more)


def received(queue: Queue, count: int) -> list[int]:
    got: list[int] = []
    while len(got) < count:
        for each in queue.receive_many(count - len(got), timeout=PATIENCE):
            got.append(int.from_bytes(each[:8], "little"))
    return got


def pages(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.page"))


def arena_bytes(broker: Broker) -> int:
    """What all participants hold of the arena, in whole blocks."""
    shares = ffi.new("int64_t[4096]")
    lib.sb_arena_shares(broker._connection, shares)
    return sum(shares)


def segments(vhost: str) -> dict[str, int]:
    """How much memory each has behind it."""
    there = Path("/dev/shm").glob(f"shmbroker.{vhost}.*")
    return {path.name: path.stat().st_blocks * 512 for path in there}


def eventually(what: Callable[[], object]) -> None:
    ends_at = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < ends_at, "it did not happen"
        time.sleep(0.005)


# --- order and memory ---------------------------------------------------------------------------


def test_what_has_no_room_goes_to_files_and_comes_back_in_order(
    broker: Broker, orders: Queue, folder: Path, vhost: str
) -> None:
    many = 30_000
    rings = {
        path.name: path.stat().st_size for path in Path("/dev/shm").glob(f"shmbroker.{vhost}.*")
    }
    for each in range(many):
        orders.publish(number(each))
    seen = orders.statistics()
    assert (seen.depth, seen.published) == (many, many)
    assert seen.paged == many - SLOTS
    assert seen.paged_bytes > PAGE_BYTES
    assert len(pages(folder)) > 1
    now = segments(vhost)
    assert len(now) == len(rings) + 1, "the inbox"
    assert sum(now.values()) - sum(rings.values()) < 4 << 20, "the inbox, and blocks of the arena"
    assert received(orders, many) == list(range(many))
    orders.publish(b"the last")
    assert orders.receive(timeout=PATIENCE) == b"the last"
    seen = orders.statistics()
    assert (seen.depth, seen.paged, seen.paged_bytes, seen.acked) == (0, 0, 0, many + 1)
    eventually(lambda: not pages(folder))


@pytest.mark.parametrize("small", [0, 20])
def test_messages_larger_than_the_room_of_the_pager(
    broker: Broker, pager: Pager, small: int
) -> None:
    queue = broker.declare_queue("orders", slots=8, when_full="page")
    sizes = [8] * small + [3 << 20] * 9 + [700 << 10, 5 << 20, 8]
    for size in sizes:
        queue.publish(bytes(size), timeout=PATIENCE)
    assert [len(queue.receive(timeout=PATIENCE)) for _ in sizes] == sizes
    assert queue.statistics().paged == 0


def test_what_is_moved_while_it_is_counted_is_counted_once(
    broker: Broker, orders: Queue, vhost: str
) -> None:
    many, counted = 30_000, set()
    for each in range(many):
        orders.publish(number(each))

    def take_all() -> None:
        with shmbroker.connect(f"shm://{vhost}") as theirs:
            received(theirs.queue("orders"), many)

    taker = threading.Thread(target=take_all)
    taker.start()
    while taker.is_alive():
        counted.add(orders.statistics().published)
    taker.join()
    assert counted == {many}


def test_random_sizes_and_pauses_of_several_producers_and_consumers(
    broker: Broker, orders: Queue, vhost: str
) -> None:
    """Each producer's messages are in order for whoever takes them; all are there, once."""
    producers, each_has = 4, 3000
    got: list[list[int]] = [[] for _ in range(2)]
    left = threading.Semaphore(producers * each_has)

    def produce(who: int) -> None:
        random = Random(who)
        with shmbroker.connect(f"shm://{vhost}") as own:
            queue, at = own.queue("orders"), who * each_has
            end = at + each_has
            while at < end:
                several = min(random.choice((1, 1, 1, 20, 700)), end - at)
                bodies = [number(value, random) for value in range(at, at + several)]
                kind = random.randrange(4)
                if several > 1:
                    assert queue.publish_many(bodies) == several
                elif kind == 0:
                    queue.publish(bodies[0], key="k", properties={"a": 1}, ttl=1000, priority=3)
                elif kind == 1:
                    with queue.loan(len(bodies[0])) as loan:
                        loan.view[:] = bodies[0]
                elif kind == 2:
                    with own.transaction() as transaction:
                        transaction.publish(queue, bodies[0])
                else:
                    queue.publish(bodies[0])
                at += several
                if random.random() < 0.01:
                    threading.Event().wait(random.random() / 200)

    def consume(who: int) -> None:
        random = Random(-who - 1)
        with shmbroker.connect(f"shm://{vhost}") as own:
            queue = own.queue("orders")
            while left.acquire(blocking=False):
                got[who].append(int.from_bytes(queue.receive(timeout=PATIENCE)[:8], "little"))
                if random.random() < 0.001:
                    threading.Event().wait(random.random() / 50)

    threads = [threading.Thread(target=produce, args=(who,)) for who in range(producers)]
    threads += [threading.Thread(target=consume, args=(who,)) for who in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got[0] + got[1]) == list(range(producers * each_has))
    for theirs in got:
        for who in range(producers):
            own = [each for each in theirs if each // each_has == who]
            assert own == sorted(own)


def test_memory_is_bounded_by_bytes(broker: Broker, pager: Pager, folder: Path) -> None:
    queue = broker.declare_queue("orders", slots=4096, max_bytes="1MiB", when_full="page")
    body = bytes(50_000)
    for _ in range(1000):
        queue.publish(body)
        assert arena_bytes(broker) < 4 << 20, "ring, inbox, and some runs of blocks that are kept"
    assert queue.statistics().bytes <= 1 << 20
    assert queue.statistics().depth == 1000
    for _ in range(1000):
        queue.get(timeout=PATIENCE).ack()
    assert queue.statistics().depth == 0
    with pytest.raises(shmbroker.MessageTooLarge):
        queue.publish(bytes(2 << 20))


def test_a_message_comes_back_as_it_was(broker: Broker, orders: Queue) -> None:
    for _ in range(SLOTS + 5000):
        orders.publish(b"before")
    orders.publish(b"body", key="key", properties={"a": 1}, ttl=1000, priority=7)
    orders.publish(b"", ttl=0.001)
    for _ in range(SLOTS + 5000):
        orders.receive(timeout=PATIENCE)
    with orders.get(timeout=PATIENCE) as message:
        assert (message.body, message.key) == (b"body", "key")
        assert message.properties["a"] == 1
        assert message.deliveries == 0
    with pytest.raises(Empty):
        orders.get(timeout=0.05)
    assert orders.statistics().expired == 1


def test_groups_selectors_dead_letters_and_schedules(broker: Broker, pager: Pager) -> None:
    dead = broker.declare_queue("dead", slots=16, when_full="page")
    queue = broker.declare_queue(
        "orders", slots=64, when_full="page", groups=True, dead_letter="dead", priorities=False
    )
    for each in range(5000):
        queue.publish(
            number(each), group=f"g{each % 3}", deliver_after=0.001 if each == 7 else None
        )
    got = []
    for _ in range(5000):
        message = queue.get(timeout=PATIENCE)
        got.append(int.from_bytes(message.body[:8], "little"))
        message.reject()
    assert sorted(got) == list(range(5000))
    got.remove(7)
    assert got == sorted(got)
    assert dead.statistics().depth == 5000
    assert received(dead, 5000) != []


def test_through_an_exchange_and_moved(broker: Broker, orders: Queue) -> None:
    exchange = broker.declare_exchange("all", "fanout")
    broker.bind("all", "orders")
    for each in range(2 * SLOTS):
        exchange.publish(number(each))
    other = broker.declare_queue("other", slots=SLOTS)
    for each in range(100):
        other.publish(number(2 * SLOTS + each))
    assert other.move_to(orders) == 100
    assert received(orders, 2 * SLOTS + 100) == list(range(2 * SLOTS + 100))


def test_asyncio(vhost: str, pager: Pager) -> None:
    async def main() -> None:
        async with await aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.declare_queue("orders", slots=64, when_full="page")
            for each in range(3000):
                await queue.publish(number(each))
            await queue.publish_many([number(each) for each in range(3000, 20_000)])
            for each in range(20_000):
                body = await queue.receive(timeout=PATIENCE)
                assert body == number(each)

    asyncio.run(main())


# --- the pager ----------------------------------------------------------------------------------


def test_another_goes_on_where_one_has_ended(broker: Broker, folder: Path, vhost: str) -> None:
    published = taken = 0
    for turn in range(6):
        with (
            shmbroker.connect(f"shm://{vhost}") as theirs,
            Pager(theirs, folder, page_bytes=PAGE_BYTES),
        ):
            queue = broker.declare_queue("orders", slots=SLOTS, when_full="page")
            for _ in range(5000):
                queue.publish(number(published))
                published += 1
            some = 4000 if turn < 5 else published - taken
            assert received(queue, some) == list(range(taken, taken + some))
            taken += some
            for other in (broker, theirs):
                with pytest.raises(InUse, match="another broker pages"):
                    Pager(other, folder)
    eventually(lambda: not pages(folder))


def test_it_ends_with_its_broker(broker: Broker, folder: Path, vhost: str) -> None:
    theirs = shmbroker.connect(f"shm://{vhost}")
    ended = Pager(theirs, folder)
    theirs.close()
    assert ended.has_ended
    assert ended.failure is None
    with Pager(broker, folder) as pager:
        ended.close()
        assert not pager.has_ended


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_of_its_own_ends_it_and_is_told(
    vhost: str, folder: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shmbroker.connect(f"shm://{vhost}") as theirs, Pager(theirs, folder) as pager:
        monkeypatch.setattr(Paged, "serve", lambda _: 1 // 0)
        queue = broker.declare_queue("orders", slots=16, when_full="page")
        queue.publish_many([b""] * 17)
        assert "it failed" in str(next(pager.changes()))
        monkeypatch.undo()
        pager.close()
        with Pager(broker, folder):
            assert len(received(queue, 17)) == 17


def test_what_is_back_is_known_by_the_ring(broker: Broker, folder: Path, vhost: str) -> None:
    """The note of it in shared memory is for statistics: a death may leave it behind."""
    with shmbroker.connect(f"shm://{vhost}") as theirs, Pager(theirs, folder):
        queue = broker.declare_queue("orders", slots=SLOTS, when_full="page")
        before = segments(vhost)
        for each in range(10_000):
            queue.publish(number(each))
        assert received(queue, 3000) == list(range(3000))
        (inbox,) = set(segments(vhost)) - set(before)
        eventually(lambda: queue.statistics().paged == 7000 - SLOTS)
    with (Path("/dev/shm") / inbox).open("r+b") as file:
        file.seek(RING_PAGED_NEXT_AT)
        file.write(bytes(8))
    with Pager(broker, folder):
        assert received(queue, 7000) == list(range(3000, 10_000))
        assert queue.statistics().dropped == 0


def test_without_a_pager_producers_wait_and_are_told_why(
    broker: Broker, folder: Path, vhost: str
) -> None:
    with pytest.raises(InvalidArgument, match=r"nobody writes pages in vhost .* shmbroker run"):
        broker.declare_queue("orders", when_full="page")
    with shmbroker.connect(f"shm://{vhost}") as theirs, Pager(theirs, folder):
        queue = broker.declare_queue("orders", slots=SLOTS, when_full="page")
    published = 0
    with pytest.raises(QueueFull, match="'orders' is full and pages, and no broker with a store"):
        while True:
            queue.publish(number(published), timeout=0)
            published += 1
    assert published > SLOTS
    assert received(queue, SLOTS) == list(range(SLOTS))
    with Pager(broker, folder):
        queue.publish(number(published), timeout=PATIENCE)
        assert received(queue, published + 1 - SLOTS) == list(range(SLOTS, published + 1))


def test_purging_and_deleting_drop_the_files(broker: Broker, orders: Queue, folder: Path) -> None:
    for turn in range(2):
        for each in range(20_000):
            orders.publish(number(each))
        assert pages(folder)
        if turn == 0:
            assert orders.purge() == 20_000
            assert orders.statistics().depth == orders.statistics().acked == 0
            assert orders.statistics().published == 20_000
            eventually(lambda: not pages(folder))
    broker.delete_queue("orders")
    with pytest.raises(NotFound):
        orders.publish(b"")
    eventually(lambda: not list(folder.iterdir()))


def test_a_queue_with_pages_is_not_deleted_by_itself(broker: Broker, pager: Pager) -> None:
    queue = broker.declare_queue(
        "orders", slots=16, when_full="page", auto_delete=True, auto_delete_delay=0.001
    )
    for each in range(20_000):
        queue.publish(number(each))
    held = queue.get_many(16, timeout=PATIENCE)
    broker.repair_for(0.01)
    broker.repair_for(0.01)
    for message in held:
        message.ack()
    assert received(queue, 20_000 - 16) == list(range(16, 20_000))

    def is_gone() -> bool:
        broker.repair_for(0.01)
        return "orders" not in [each.name for each in broker.queues()]

    eventually(is_gone)


def test_files_of_queues_that_are_no_more_are_removed(
    broker: Broker, folder: Path, vhost: str
) -> None:
    with shmbroker.connect(f"shm://{vhost}") as theirs, Pager(theirs, folder):
        queue = broker.declare_queue("orders", slots=SLOTS, when_full="page")
        for _ in range(10_000):
            queue.publish(b"")
    (folder / "of people").mkdir()
    assert pages(folder)
    broker.delete_queue("orders")
    with Pager(broker, folder):
        assert [path.name for path in folder.iterdir()] == ["of people"]


def test_a_full_disk(storage: Path, folder: Path, vhost: str) -> None:
    said = run(
        "tests.support.paging_failures",
        vhost,
        folder,
        preload=str(storage),
        STORAGE_FOLDER=str(folder),
    )
    assert said.endswith("in order"), said


def test_a_pager_without_room_for_its_folder_can_be_stopped(
    broker: Broker, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, tried = time.monotonic(), 0

    def no_room(self: Path, mode: int = 0o777) -> None:
        nonlocal tried
        tried += 1
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", no_room)
    pager = Pager(broker, folder)
    eventually(lambda: tried > 3)
    assert tried < 4 + 20 * (time.monotonic() - began), "it waits between two tries"
    stopper = threading.Thread(target=pager.stop, daemon=True)
    stopper.start()
    stopper.join(PATIENCE)
    assert not stopper.is_alive()


def test_a_pager_without_a_thread_is_refused_in_words(
    broker: Broker, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched, pytest.raises(SystemRefused, match="ulimit -u"):
        patched.setattr(threading.Thread, "start", no_thread)
        Pager(broker, folder)
    Pager(broker, folder).close()


def damaged(broker: Broker, folder: Path, vhost: str, offset: int) -> tuple[list[int], list[str]]:
    """What comes back, and what is said, when a byte of the second of several files is changed."""
    with (
        shmbroker.connect(f"shm://{vhost}") as theirs,
        Pager(theirs, folder, page_bytes=PAGE_BYTES),
    ):
        queue = broker.declare_queue("orders", slots=SLOTS, when_full="page")
        for each in range(10_000):
            queue.publish(number(each))
    path = pages(folder)[1]
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)
    with Pager(broker, folder):
        got = [int.from_bytes(body[:8], "little") for body in iter_bodies(queue)]
        assert queue.statistics().dropped == 10_000 - len(got)
    said = [each.text for each in broker.errors()]
    assert [kept.name for kept in folder.glob("*/*.damaged")] == [f"{path.name}.damaged"]
    return got, [each for each in said if path.name in each or "missing" in each]


def iter_bodies(queue: Queue) -> Iterator[bytes]:
    while True:
        try:
            yield queue.receive(timeout=1)
        except Empty:
            return


@pytest.mark.parametrize(
    ("offset", "text", "most"),
    [
        (20, "offset 0: its header does not check", 1000),
        (64 + 72 * 3 + 4, "offset 280: the head of a record does not check", 1),
        (64 + 72 * 3 + 70, "offset 280: the body of a record does not check", 1),
    ],
)
def test_a_damaged_file_is_reported_and_the_rest_comes_back(
    broker: Broker, folder: Path, vhost: str, offset: int, text: str, most: int
) -> None:
    got, said = damaged(broker, folder, vhost, offset)
    assert got == sorted(set(got))
    assert 10_000 - most <= len(got) < 10_000
    assert any(text in each for each in said), said
    assert any(f"{10_000 - len(got)} messages are missing" in each for each in said), said


def test_a_file_that_is_gone_is_reported(broker: Broker, folder: Path, vhost: str) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as theirs,
        Pager(theirs, folder, page_bytes=PAGE_BYTES),
    ):
        queue = broker.declare_queue("orders", slots=SLOTS, when_full="page")
        for each in range(10_000):
            queue.publish(number(each))
    gone = [pages(folder)[1], pages(folder)[-1]]
    for path in gone:
        path.unlink()
    with Pager(broker, folder):
        queue.publish(number(10_000))
        got = [int.from_bytes(body[:8], "little") for body in iter_bodies(queue)]
        assert got == sorted(set(got))
        assert got[-1] == 10_000
        assert len(got) + queue.statistics().dropped == 10_001
    said = [each.text for each in broker.errors()]
    assert any(gone[0].name in each and "the file is missing" in each for each in said)
    assert sum("messages are missing" in each for each in said) == 2


# --- what does not go together ------------------------------------------------------------------


@pytest.mark.parametrize(
    "setting", [{"last_value": True}, {"non_destructive": True},
                {"duplicate_ids": 10}]
)  # fmt: skip
def test_settings_that_pages_exclude(
    broker: Broker, pager: Pager, setting: dict[str, object]
) -> None:
    (name,) = setting
    with pytest.raises(InvalidArgument, match=f"when_full 'page' has no {name}: "):
        broker.declare_queue("orders", when_full="page", **setting)  # type: ignore[arg-type]


def test_calls_that_pages_exclude(broker: Broker, orders: Queue) -> None:
    with pytest.raises(InvalidArgument, match=r"'orders' pages, .* without an id"):
        orders.publish(b"", message_id="a")
    with pytest.raises(InvalidArgument, match="without an id"):
        orders.loan(3, message_id="a")
    with pytest.raises(InvalidArgument, match="without an id"), broker.transaction() as transaction:
        transaction.publish(orders, b"", message_id="a")
    with pytest.raises(InvalidArgument, match="named producer"):
        orders.producer("me")
    with pytest.raises(InvalidArgument, match="past its pages"):
        orders.port()


def test_by_pattern(broker: Broker, pager: Pager, folder: Path) -> None:
    broker.settings("bulk.#", when_full="page", max_messages=10)
    queue = broker.declare_queue("bulk.a")
    for each in range(1000):
        queue.publish(number(each))
    assert queue.statistics().paged == 990
    assert queue.explain()["when_full"].value == "page"
    assert received(queue, 1000) == list(range(1000))
    broker.declare_queue("bulk.a")


def test_browsing_and_subscribing_see_what_is_in_memory(broker: Broker, orders: Queue) -> None:
    seen: list[int] = []
    with broker.subscribe("orders", timeout=PATIENCE) as subscription:
        for each in range(2 * SLOTS):
            orders.publish(number(each))
        assert [int.from_bytes(each.body[:8], "little") for each in orders.browse()] == list(
            range(SLOTS)
        )
        for _ in range(2 * SLOTS):
            orders.receive(timeout=PATIENCE)
            seen.append(int.from_bytes(subscription.get().body[:8], "little"))
    assert seen == list(range(2 * SLOTS))
