"""A journal on a disk that is full, with no room made from outside: acknowledgements make it."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker, Queue, QueueFull, Unconfirmed
from shmbroker.ipc.base.errors import DiskFull, JournalDamaged, JournalFailed
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.paging.pager import Pager
from tests.support import host
from tests.support.host import PATIENCE, journaling
from tests.support.small_disk import fill, small_disk

DISK = 12 << 20
SLOTS = 8192
BODY = 8000
PAGE_BYTES = 4 << 20


def body(number: int) -> bytes:
    return number.to_bytes(8, "little") + bytes(BODY)


def number_of(received: bytes) -> int:
    return int.from_bytes(received[:8], "little")


def is_full(journaler: Journaler) -> bool:
    return isinstance(journaler.failure, DiskFull)


def has_no_room(queue: Queue, journaler: Journaler) -> bool:
    """Why the last message is not confirmed; False: it was only late, and is confirmed by now."""
    ends_at = time.monotonic() + PATIENCE
    while time.monotonic() < ends_at:
        with suppress(Unconfirmed):
            queue.confirm(timeout=0.02)
            return False
        if is_full(journaler):
            return True
    raise AssertionError("it is not confirmed, and the disk is not full")


def publish_until_full(queue: Queue, journaler: Journaler, first: int = 0) -> int:
    """How many were confirmed; one more is in the ring."""
    for number in range(first, first + SLOTS):
        try:
            queue.publish(body(number), timeout=0.5)
        except Unconfirmed:
            if has_no_room(queue, journaler):
                return number
    raise AssertionError("it never became full")


def page_until_full(queue: Queue, journaler: Journaler, number: int, beside: Queue | None) -> int:
    """The same of a queue that pages, for which there may be no room in its ring either."""
    ends_at = time.monotonic() + 2 * PATIENCE
    while time.monotonic() < ends_at:
        with suppress(Unconfirmed):
            if beside is not None:
                beside.publish(body(0), timeout=0.1)
        try:
            queue.publish(body(number), timeout=0.5)
        except Unconfirmed:
            if has_no_room(queue, journaler):
                return number
        except (QueueFull, DiskFull):
            if is_full(journaler):
                return number
            continue
        number += 1
    raise AssertionError("it never became full")


def take(queue: Queue, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        found += map(number_of, queue.receive_many(count - len(found), timeout=PATIENCE))
    return found


def await_a_try(beat: array[int]) -> None:
    """Until the journaler, which waits for room, has looked for it with all that is there now."""
    ends_at = time.monotonic() + PATIENCE
    for _ in range(2):  # it beats, then it looks
        before = beat[0]
        while beat[0] == before:
            assert time.monotonic() < ends_at
            time.sleep(0.005)


def moments(folder: Path, retired_of: int = 1, beyond: int = 0) -> tuple[int, int]:
    """In which frame the last message of the first queue that was declared was written, and in
    which the first of this one was retired that comes behind so many."""
    declared: list[int] = []
    retired, written = [], []
    with Replay(folder) as replay:
        for record in replay:
            where = record.frame
            if record.kind == records.QUEUE and record.queue not in declared:
                declared.append(record.queue)
            elif record.kind == records.MESSAGE and record.queue == declared[0]:
                written.append(where)
            elif record.kind == records.RETIRED and [record.queue] == declared[retired_of:][:1]:
                retired += [where] if record.position > beyond else []
    return max(written), min(retired)


def values_in(folder: Path) -> int:
    """How many messages of the first queue that was declared a restart would find."""
    declared: list[int] = []
    head, there = 0, set()
    with Replay(folder) as replay:
        for record in replay:
            declared += [record.queue] if record.kind == records.QUEUE else []
            if declared and record.queue == declared[0]:
                if record.kind == records.MESSAGE:
                    there.add(record.position)
                else:
                    head = max(head, record.position)
    return sum(position >= head for position in there)


def values_of_a_moment(folder: Path) -> int:
    """A segment that is used again while it is read looks damaged: then all are read again."""
    ends_at = time.monotonic() + PATIENCE
    while time.monotonic() < ends_at:
        with suppress(JournalFailed, JournalDamaged):
            return values_in(folder)
    return values_in(folder)


@contextmanager
def after_the_host_died(vhost: str, folder: Path) -> Iterator[Broker]:
    """Its journaler lives on here, and may let go of a segment that is being read."""
    with ExitStack() as opened:
        ends_at = time.monotonic() + PATIENCE
        while True:
            try:
                again = opened.enter_context(host.after_the_host_died(vhost, folder))
                break
            except (JournalFailed, JournalDamaged):
                if time.monotonic() > ends_at:
                    raise
        yield again


def test_consuming_makes_room(tmp_path: Path, vhost: str) -> None:
    """Publishers go on when what was confirmed is consumed, again and again."""
    with (
        small_disk(tmp_path / "disk", DISK) as disk,
        shmbroker.connect(f"shm://{vhost}") as broker,
        journaling(vhost, disk / "journal") as journaler,
    ):
        queue = broker.declare_queue("orders", durable=True, slots=SLOTS)
        first = 0
        for _ in range(3):
            full = publish_until_full(queue, journaler, first)
            assert isinstance(journaler.failure, DiskFull)
            assert take(queue, full - first) == [*range(first, full)]
            queue.confirm(timeout=PATIENCE)
            assert take(queue, 1) == [full]
            first = full + 1
        assert journaler.failure is None
        queue.publish(b"last", timeout=PATIENCE)  # its frame has all that was acknowledged before
        with after_the_host_died(vhost, disk / "journal") as again:
            assert [each.body for each in again.queue("orders").browse()] == [b"last"]


def test_consuming_makes_room_beside_transactions(tmp_path: Path, vhost: str) -> None:
    """What a transaction has acknowledged is let go of only with what it has published."""
    with (
        small_disk(tmp_path / "disk", DISK) as disk,
        shmbroker.connect(f"shm://{vhost}") as broker,
        journaling(vhost, disk / "journal") as journaler,
    ):
        orders = broker.declare_queue("orders", durable=True, slots=SLOTS)
        bills = broker.declare_queue("bills", durable=True)
        full = publish_until_full(orders, journaler)
        billed = []
        for _ in range(5):
            message = orders.get(timeout=PATIENCE)
            transaction = broker.transaction()
            transaction.publish(bills, message.body)
            billed.append(number_of(message.body))
            transaction.ack(message)
            transaction.commit(confirm="shm")
        taken = take(orders, full - len(billed))
        orders.confirm(timeout=PATIENCE)
        bills.confirm(timeout=PATIENCE)
        assert sorted(billed + taken) == [*range(full)]
        with after_the_host_died(vhost, disk / "journal") as again:
            found = [number_of(each.body) for each in again.queue("bills").browse()]
            assert found == billed


def test_dead_letters_are_not_lost_on_a_full_disk(tmp_path: Path, vhost: str) -> None:
    """The message is let go of only with its copy, whatever else is acknowledged behind it."""
    with (
        small_disk(tmp_path / "disk", DISK) as disk,
        shmbroker.connect(f"shm://{vhost}") as broker,
    ):
        with journaling(vhost, disk / "journal") as journaler:
            dead = broker.declare_queue("dead", durable=True)
            orders = broker.declare_queue("orders", durable=True, slots=SLOTS, dead_letter="dead")
            for _ in range(2):  # so that no position in `dead` is 0
                orders.publish(body(SLOTS), timeout=PATIENCE)
                orders.get(timeout=PATIENCE).reject()
            rejected = [SLOTS] * 2
            full = publish_until_full(orders, journaler)
            for _ in range(20):
                message = orders.get(timeout=PATIENCE)
                rejected.append(number_of(message.body))
                message.reject()
            assert isinstance(journaler.failure, DiskFull)
            take(orders, full - 20)
            dead.confirm(timeout=PATIENCE)
        dead_lettered, retired = moments(disk / "journal", beyond=2)
        assert dead_lettered <= retired, "a message was let go of before its copy was there"
        with after_the_host_died(vhost, disk / "journal") as again:
            assert [number_of(each.body) for each in again.queue("dead").browse()] == rejected


def test_a_value_is_let_go_of_with_the_newer_one(tmp_path: Path, vhost: str) -> None:
    with (
        small_disk(tmp_path / "disk", DISK) as disk,
        shmbroker.connect(f"shm://{vhost}") as broker,
    ):
        with journaling(vhost, disk / "journal") as journaler:
            prices = broker.declare_queue("prices", durable=True, last_value=True)
            orders = broker.declare_queue("orders", durable=True, slots=SLOTS)
            prices.publish(b"old", key="coffee", timeout=PATIENCE)
            full = publish_until_full(orders, journaler)
            assert isinstance(journaler.failure, DiskFull)
            prices.publish(b"new", key="coffee", confirm="shm")
            take(orders, full)
            prices.confirm(timeout=PATIENCE)
        newer, retired = moments(disk / "journal", retired_of=0)
        assert newer <= retired, "the older one was let go of before the newer one was there"


def test_what_is_published_behind_a_transaction_takes_no_room(tmp_path: Path, vhost: str) -> None:
    """The frame that waits does not grow larger than a segment while it does."""
    beat = array("q", [0])
    with (
        small_disk(tmp_path / "disk", DISK) as disk,
        shmbroker.connect(f"shm://{vhost}") as broker,
        journaling(vhost, disk / "journal", beat=beat) as journaler,
    ):
        orders = broker.declare_queue("orders", durable=True, slots=SLOTS)
        bills = broker.declare_queue("bills", durable=True)
        full = publish_until_full(orders, journaler)
        message = orders.get(timeout=PATIENCE)
        transaction = broker.transaction()
        transaction.publish(bills, message.body)
        transaction.ack(message)
        transaction.commit(confirm="shm")
        await_a_try(beat)
        behind = [*range(full + 1, full + 401)]
        orders.publish_many(map(body, behind), confirm="shm")
        take(orders, full - 1)
        orders.confirm(timeout=PATIENCE)
        bills.confirm(timeout=PATIENCE)
        with after_the_host_died(vhost, disk / "journal") as again:
            found = [number_of(each.body) for each in again.queue("orders").browse()]
            assert found == [full, *behind]
            assert again.queue("bills").statistics().depth == 1


def test_deleting_a_queue_makes_room(tmp_path: Path, vhost: str) -> None:
    with (
        small_disk(tmp_path / "disk", DISK) as disk,
        shmbroker.connect(f"shm://{vhost}") as broker,
        journaling(vhost, disk / "journal") as journaler,
    ):
        orders = broker.declare_queue("orders", durable=True)
        bulk = broker.declare_queue("bulk", durable=True, slots=SLOTS)
        publish_until_full(bulk, journaler)
        broker.delete_queue("bulk", force=True)
        orders.publish(b"on it goes", timeout=PATIENCE)
        with after_the_host_died(vhost, disk / "journal") as again:
            assert [queue.name for queue in again.queues()] == ["orders"]
            assert again.queue("orders").receive(timeout=PATIENCE) == b"on it goes"


@pytest.mark.parametrize("beside", [False, True])
def test_what_is_in_pages_can_be_consumed(tmp_path: Path, vhost: str, beside: bool) -> None:
    """The disk is full, and no segment of the journal can go: it has what waits for the pager, or
    what nobody takes from the queue beside.  What comes out of pages is written all the same."""
    many, before = 750, 250
    with (
        small_disk(tmp_path / "disk", 20 << 20) as disk,
        shmbroker.connect(f"shm://{vhost}") as broker,
        journaling(vhost, disk / "journal") as journaler,
        shmbroker.connect(f"shm://{vhost}", name="pager") as other,
        Pager(other, disk / "pages", page_bytes=PAGE_BYTES, epoch=1),
    ):
        queue = broker.declare_queue("orders", durable=True, slots=64, when_full="page")
        plain = broker.declare_queue("plain", durable=True, slots=SLOTS)
        queue.publish_many([body(number) for number in range(many)], timeout=PATIENCE)
        assert take(queue, before) == [*range(before)]
        fill(disk)
        full = page_until_full(queue, journaler, many, plain if beside else None)
        assert isinstance(journaler.failure, DiskFull)
        assert queue.statistics().paged > 0
        assert take(queue, full - before) == [*range(before, full)]
        plain.publish(b"on it goes", timeout=PATIENCE)
        queue.publish(b"on it goes", timeout=PATIENCE)
        assert journaler.failure is None


def test_an_older_value_stays_while_the_newer_one_waits(tmp_path: Path, vhost: str) -> None:
    """What comes out of pages is written into the reserve, and the newer value is not: if the host
    died, the older one would be what is left of the key."""
    with (
        small_disk(tmp_path / "disk", 20 << 20) as disk,
        shmbroker.connect(f"shm://{vhost}") as broker,
        journaling(vhost, disk / "journal") as journaler,
        shmbroker.connect(f"shm://{vhost}", name="pager") as other,
        Pager(other, disk / "pages", page_bytes=PAGE_BYTES, epoch=1),
    ):
        prices = broker.declare_queue("prices", durable=True, last_value=True)
        queue = broker.declare_queue("orders", durable=True, slots=64, when_full="page")
        plain = broker.declare_queue("plain", durable=True, slots=SLOTS)
        prices.publish(b"old", key="gold", timeout=PATIENCE)
        queue.publish_many([body(number) for number in range(750)], timeout=PATIENCE)
        fill(disk)
        page_until_full(queue, journaler, 750, plain)
        assert values_of_a_moment(disk / "journal") > 0
        for _ in range(100):
            take(queue, 1)
            prices.publish(b"new", key="gold", confirm="shm")
            assert values_of_a_moment(disk / "journal") > 0
