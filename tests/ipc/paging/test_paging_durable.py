"""Durable queues that page: what is confirmed is on disk, in the journal or in pages, and in order.

"The host dies" is: the vhost's memory is deleted, and made anew from the journal and the pages.
"""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

import shmbroker
from shmbroker import Broker, Empty, InvalidArgument, Queue, QueueFull, Unconfirmed, aio
from shmbroker.core.layout import IN_INBOX
from shmbroker.ipc.base.errors import DiskFull
from shmbroker.ipc.broker.journaler import Journaler, restore
from shmbroker.ipc.journal.export import compacted
from shmbroker.ipc.paging.paged import Paged
from shmbroker.ipc.paging.pager import Pager
from shmbroker.ipc.vhost import vhost as vhosts
from tests.ipc.paging.test_paging import eventually, number, pages, received
from tests.support.compiler import compile_faults
from tests.support.small_disk import empty, empty_names, fill, fill_names, small_disk

SLOTS = 64
SEGMENT = 256 << 10
PAGE_BYTES = 16 << 10
PATIENCE = 60.0
MANY = 3000


class Host:
    """A store, and the memory of a vhost that may be gone."""

    def __init__(self, vhost: str, store: Path) -> None:
        self.vhost = vhost
        self.journal, self.pages = store / "journal", store / "pages"
        self.journal.mkdir()
        self.epoch = 0

    @contextmanager
    def up(self, *, pager: bool = True) -> Iterator[Broker]:
        """With a broker at work: the first one, or of the memory that there is."""
        with (
            shmbroker.connect(f"shm://{self.vhost}", name="broker") as broker,
            Journaler(self.journal, segment_bytes=SEGMENT) as self.journaler,
        ):
            restored = None
            if self.epoch and not broker.queues():
                restored = restore(broker, self.journal)
            self.epoch += 1
            self.journaler.start(broker, self.epoch, restored)
            if not pager:
                yield broker
                return
            with self.pager(broker) as pager_:
                yield broker
                assert pager_.failure is None

    def pager(self, broker: Broker) -> Pager:
        return Pager(broker, self.pages, page_bytes=PAGE_BYTES, epoch=self.epoch)

    def dies(self) -> None:
        vhosts.delete(self.vhost, force=True)
        vhosts.create(self.vhost, arena_bytes=64 << 20)


@pytest.fixture
def host(vhost: str, tmp_path: Path) -> Host:
    return Host(vhost, tmp_path)


def declare(broker: Broker) -> Queue:
    return broker.declare_queue("orders", slots=SLOTS, durable=True, when_full="page")


def publish(queue: Queue, first: int, end: int) -> None:
    for begin in range(first, end, 200):
        bodies = [number(each) for each in range(begin, min(begin + 200, end))]
        assert queue.publish_many(bodies, timeout=PATIENCE) == len(bodies)


def rests(folder: Path) -> None:
    """Wait until the pager has written no more for a while."""
    seen: list[tuple[Path, int]] = []

    def is_as_before() -> bool:
        nonlocal seen
        before, seen = seen, [(each, each.stat().st_mtime_ns) for each in pages(folder)]
        time.sleep(0.1)
        return seen == before

    eventually(is_as_before)


def missing(broker: Broker) -> list[str]:
    return [each.text for each in broker.errors() if "pages of queue" in each.text]


def test_what_has_no_room_goes_out_and_comes_back_in_order(host: Host) -> None:
    with host.up() as broker:
        queue = declare(broker)
        publish(queue, 0, MANY)
        seen = queue.statistics()
        assert (seen.depth, seen.paged) == (MANY, MANY - SLOTS)
        eventually(lambda: len(pages(host.pages)) > 3)  # the pager is at it
        assert received(queue, MANY) == list(range(MANY))
        queue.publish(b"the last", timeout=PATIENCE)
        assert queue.receive(timeout=PATIENCE) == b"the last"
        eventually(lambda: not pages(host.pages))
        assert missing(broker) == []


def test_all_of_it_is_there_after_the_host_died(host: Host) -> None:
    with host.up() as broker:
        queue = declare(broker)
        publish(queue, 0, MANY)
        assert received(queue, 1000) == list(range(1000))
        eventually(lambda: queue.statistics().acked == 1000)
    host.dies()
    with host.up() as broker:
        queue = broker.queue("orders")
        assert queue.statistics().depth == MANY - 1000
        publish(queue, MANY, MANY + 500)
        assert received(queue, MANY - 500) == list(range(1000, MANY + 500))
        with pytest.raises(Empty):
            queue.get(timeout=0.05)
        assert missing(broker) == []


@pytest.mark.parametrize("taken", [SLOTS + 100, MANY])
def test_compacting_keeps_how_far_the_pages_were_read(host: Host, taken: int) -> None:
    with host.up() as broker:
        queue = declare(broker)
        publish(queue, 0, MANY)
        rests(host.pages)
        assert received(queue, taken) == list(range(taken))
        eventually(lambda: queue.statistics().acked == taken)
    compacted(host.journal, pytest.fail, SEGMENT)
    host.dies()
    with host.up() as broker:
        queue = broker.queue("orders")
        publish(queue, MANY, MANY + 100)
        assert received(queue, MANY + 100 - taken) == list(range(taken, MANY + 100))
        assert missing(broker) == []
        assert queue.statistics().dropped == 0


def test_what_waited_in_the_inbox_was_not_delivered_before(host: Host) -> None:
    with host.up() as broker:
        declare(broker)
    with host.up(pager=False) as broker:
        publish(broker.queue("orders"), 0, SLOTS + 100)
    host.dies()
    with host.up() as broker:
        messages = broker.queue("orders").get_many(SLOTS + 100, timeout=PATIENCE)
        assert [each.redelivered for each in messages] == [True] * SLOTS
        for message in messages:
            message.ack()
        for _ in range(100):
            with broker.queue("orders").get(timeout=PATIENCE) as message:
                assert not message.redelivered


def test_positions_go_on_when_nothing_was_left_and_the_journal_was_recycled(host: Host) -> None:
    """How far the pages were read is known although no message of that time is in the journal."""
    with host.up() as broker:
        queue = declare(broker)
        other = broker.declare_queue("other", durable=True)
        publish(queue, 0, MANY)
        assert received(queue, MANY) == list(range(MANY))
        eventually(lambda: not pages(host.pages))
        before = host.journaler.statistics().serial
        while host.journaler.statistics().serial < before + 4:
            other.publish(bytes(10_000), timeout=PATIENCE)
            other.receive(timeout=PATIENCE)
    for _ in range(2):
        host.dies()
        with host.up() as broker:
            queue = broker.queue("orders")
            assert queue.statistics().depth == 0
            publish(queue, 0, MANY)
            assert received(queue, MANY) == list(range(MANY))
            eventually(lambda: not pages(host.pages))
            assert (missing(broker), queue.statistics().dropped) == ([], 0)


def test_confirms_tell_of_the_inbox(host: Host) -> None:
    with host.up(pager=False) as broker:
        with host.pager(broker):
            queue = declare(broker)
        for each in range(SLOTS):
            assert queue.publish(number(each), timeout=PATIENCE) == each
        first = queue.publish(number(SLOTS), timeout=PATIENCE)
        assert first == IN_INBOX
        queue.confirm(timeout=0)
    with shmbroker.connect(f"shm://{host.vhost}") as alone:
        queue = alone.queue("orders")
        position = queue.publish(number(SLOTS + 1), confirm="shm")
        assert (position, queue.published) == (IN_INBOX + 1, IN_INBOX + 2)
        for asked in (position, None):
            with pytest.raises(Unconfirmed) as caught:
                queue.confirm(asked, timeout=0.01)
            assert caught.value.pending == (("orders", position),)
        queue.confirm(first, timeout=0)
        with host.up():
            queue.confirm(position, timeout=PATIENCE)
            assert received(queue, SLOTS + 2) == list(range(SLOTS + 2))


def test_confirms_are_awaitable(host: Host) -> None:
    async def session() -> None:
        async with await aio.connect(f"shm://{host.vhost}") as broker:
            queue = await broker.queue("orders")
            for each in range(0, 300, 100):
                bodies = [number(value) for value in range(each, each + 100)]
                assert await queue.publish_many(bodies, timeout=PATIENCE) == 100
            await queue.publish(number(300), timeout=PATIENCE)
            position = queue.publish_nowait(number(301))
            assert position > IN_INBOX
            await queue.confirm(position, timeout=PATIENCE)
            await queue.confirm(timeout=PATIENCE)

    with host.up() as broker:
        declare(broker)
        asyncio.run(session())
    host.dies()
    with host.up() as broker:
        assert received(broker.queue("orders"), 302) == list(range(302))


def test_a_transaction_is_there_as_a_whole(host: Host) -> None:
    with host.up() as broker:
        queue, other = declare(broker), broker.declare_queue("other", durable=True)
        publish(queue, 0, SLOTS)
        other.publish(b"taken", timeout=PATIENCE)
        with broker.transaction() as transaction:
            transaction.ack(other.get(timeout=PATIENCE))
            for each in range(SLOTS, SLOTS + 10):
                transaction.publish(queue, number(each))
    host.dies()
    with host.up() as broker:
        assert received(broker.queue("orders"), SLOTS + 10) == list(range(SLOTS + 10))
        assert broker.queue("other").statistics().depth == 0


def test_what_was_purged_stays_so(host: Host) -> None:
    with host.up() as broker:
        queue = declare(broker)
        publish(queue, 0, MANY)
        assert queue.purge() == MANY
        publish(queue, MANY, MANY + 10)
    host.dies()
    with host.up() as broker:
        queue = broker.queue("orders")
        assert received(queue, 10) == list(range(MANY, MANY + 10))
        assert missing(broker) == []
        publish(queue, 0, MANY)
        assert queue.purge() == MANY
    host.dies()
    with host.up() as broker:
        queue = broker.queue("orders")
        publish(queue, 0, 500)
        assert received(queue, 500) == list(range(500))
        assert missing(broker) == []
        eventually(lambda: not pages(host.pages))


def test_files_stay_until_the_journal_has_what_was_in_them(host: Host) -> None:
    with host.up() as broker:
        publish(declare(broker), 0, MANY)
        there = pages(host.pages)
    with shmbroker.connect(f"shm://{host.vhost}", name="no journal") as broker:
        queue = broker.queue("orders")
        drained = received(queue, SLOTS)
        assert drained == list(range(SLOTS)), "what the journal had passed"
        with host.pager(broker):
            eventually(lambda: broker.queue("orders").statistics().paged == MANY - 2 * SLOTS)
            with pytest.raises(Empty):
                queue.get(timeout=0.05)
            assert set(there) <= set(pages(host.pages))
    with host.up() as broker:
        queue = broker.queue("orders")
        assert received(queue, MANY - SLOTS) == list(range(SLOTS, MANY))
        eventually(lambda: not pages(host.pages))


def test_a_time_to_live_holds_after_the_host_died(host: Host) -> None:
    with host.up() as broker:
        queue = declare(broker)
        publish(queue, 0, SLOTS)
        for each in range(SLOTS, 2 * SLOTS):
            queue.publish(number(each), ttl=0.01 if each % 2 else 3600, timeout=PATIENCE)
    host.dies()
    time.sleep(0.01)  # until the time of the last one is over
    with host.up() as broker:
        expected = [each for each in range(2 * SLOTS) if each < SLOTS or each % 2 == 0]
        assert received(broker.queue("orders"), len(expected)) == expected


def test_a_deleted_queue_leaves_nothing(host: Host) -> None:
    with host.up() as broker:
        publish(declare(broker), 0, MANY)
        broker.delete_queue("orders")
        eventually(lambda: not list(host.pages.iterdir()))
        declare(broker)
    host.dies()
    with host.up() as broker:
        assert broker.queue("orders").statistics().depth == 0
        assert [each.name for each in broker.queues()] == ["orders"]


def test_pages_stay_at_a_start_that_cannot_make_a_folder(host: Host, tmp_path: Path) -> None:
    """The queue that has none yet is followed before the one with pages."""
    with small_disk(tmp_path / "disk", 4 << 20, names=200) as disk:
        host.pages = disk / "pages"
        with host.up() as broker:
            broker.declare_queue("second", slots=SLOTS, durable=True, when_full="page")
            broker.declare_queue("whose row the inbox of second takes")
            publish(declare(broker), 0, MANY)
            eventually(lambda: len(pages(host.pages)) > 3)
            rests(host.pages)
            broker.delete_queue("whose row the inbox of second takes")
        there = pages(host.pages)
        fill_names(disk)
        with host.up(pager=False) as broker:
            publish(broker.queue("second"), 0, 2 * SLOTS)
            with host.pager(broker) as pager:
                eventually(lambda: isinstance(pager.failure, DiskFull))
                assert pages(host.pages) == there
                empty_names(disk)
                assert received(broker.queue("orders"), MANY) == list(range(MANY))
                assert received(broker.queue("second"), 2 * SLOTS) == list(range(2 * SLOTS))
                assert not any("missing" in each for each in missing(broker))


START_A_PAGER = """
import sys, shmbroker
from shmbroker.ipc.paging.pager import Pager
with shmbroker.connect(sys.argv[1]) as broker, Pager(broker, sys.argv[2]) as pager:
    print(type(pager.failure).__name__, flush=True)
    sys.stdin.read()
"""


def test_pages_stay_at_a_start_that_cannot_sync_their_folder(vhost: str, tmp_path: Path) -> None:
    """No queue is followed yet."""
    folder, faults = tmp_path / "store" / "pages", tmp_path / "faults"
    folder.parent.mkdir()
    with shmbroker.connect(f"shm://{vhost}") as broker:
        with Pager(broker, folder, page_bytes=PAGE_BYTES):
            queue = broker.declare_queue("orders", slots=SLOTS, when_full="page")
            publish(queue, 0, MANY)
            eventually(lambda: len(pages(folder)) > 1)
        there = pages(folder)
        faults.write_text(f"{folder.parent} {errno.ENOSPC}\n")
        with subprocess.Popen(
            [sys.executable, "-c", START_A_PAGER, f"shm://{vhost}", folder],
            env=os.environ | {"LD_PRELOAD": str(compile_faults(tmp_path)), "FAULTS": str(faults)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as other:
            assert other.stdin
            assert other.stdout
            try:
                assert other.stdout.readline() == b"DiskFull\n"
                assert pages(folder) == there
                faults.write_text("")
                assert received(queue, MANY) == list(range(MANY))
            finally:
                other.stdin.close()
        assert other.returncode == 0
        assert missing(broker) == []


# --- damage ---------------------------------------------------------------------------------------


def test_a_torn_tail_is_cut(host: Host) -> None:
    """What was not synced is in the inbox, whatever the file has of it."""
    with host.up(pager=False) as broker:
        with host.pager(broker):
            queue = declare(broker)
            publish(queue, 0, 1000)
            eventually(lambda: queue.statistics().paged == 1000 - SLOTS)
            eventually(lambda: pages(host.pages))
        publish(queue, 1000, 1500)  # in the inbox only
    last = pages(host.pages)[-1]
    for torn in (bytes(3), b"x" * 3, b"x" * 3000):
        last.write_bytes(last.read_bytes() + torn)
        host.dies()
        with host.up() as broker:
            assert broker.queue("orders").statistics().depth == 1500
            assert missing(broker) == []
    host.dies()
    begun = int(pages(host.pages)[-1].stem, 16) + 1
    (last.parent / f"{begun:016x}.page").write_bytes(b"")
    with host.up() as broker:
        assert received(broker.queue("orders"), 1500) == list(range(1500))
        assert missing(broker) == []


def test_damage_is_told_with_file_and_offset(host: Host) -> None:
    with host.up() as broker:
        publish(declare(broker), 0, MANY)
        eventually(lambda: len(pages(host.pages)) > 2)
    broken = pages(host.pages)[1]
    content = bytearray(broken.read_bytes())
    content[len(content) // 2] ^= 1
    broken.write_bytes(content)
    host.dies()
    with host.up() as broker:
        queue = broker.queue("orders")
        got = []
        while queue.statistics().depth:
            got += received(queue, 1)
        assert got == sorted(set(got))
        lost = MANY - len(got)
        assert 0 < lost < 500
        eventually(lambda: queue.statistics().dropped == lost)
        said = " ".join(missing(broker))
        assert f"{broken.name}, offset " in said
        assert f"{lost} messages are missing" in said
        eventually(lambda: not pages(host.pages))
        assert [each.name for each in broken.parent.iterdir()] == [f"{broken.name}.damaged"]


# --- another broker -------------------------------------------------------------------------------


def test_who_was_replaced_writes_no_more(host: Host, tmp_path: Path) -> None:
    """The epoch in the shared directory is another one: nothing is written, no gate is moved."""
    lock = tmp_path / "live.lock"
    lock.write_text(f"{1:016x}")
    with (
        lock.open() as fence,
        host.up(pager=False) as broker,
        Pager(broker, host.pages, page_bytes=PAGE_BYTES, epoch=1, fence=fence.fileno()) as pager,
    ):
        queue = declare(broker)
        publish(queue, 0, 500)
        eventually(lambda: queue.statistics().paged_bytes > 0)
        with lock.open("r+") as file:  # in place: it is never empty
            file.write(f"{2:016x}")
        publish(queue, 500, 600)
        eventually(lambda: pager.failure)
        assert "another broker is live: the epoch is 0000000000000002" in str(pager.failure)
    host.dies()
    with host.up() as broker:
        assert received(broker.queue("orders"), 600) == list(range(600))
        assert missing(broker) == []


def test_files_of_who_was_replaced_are_left_out(host: Host) -> None:
    with host.up() as broker:
        publish(declare(broker), 0, MANY)
        eventually(lambda: len(pages(host.pages)) > 2)
    stale = pages(host.pages)[1].read_bytes()
    with host.up() as broker:
        queue = broker.queue("orders")
        publish(queue, MANY, MANY + 300)
        rests(host.pages)  # publishers do not wait for the pager, which may be at the next one
        last = pages(host.pages)[-1]
        following = last.parent / f"{int(last.stem, 16) + 1:016x}.page"
        following.write_bytes(stale)  # where the next one is to be
        publish(queue, MANY + 300, 2 * MANY)
        assert received(queue, 2 * MANY) == list(range(2 * MANY))
        assert missing(broker) == []


def test_what_does_not_go_with_pages_is_refused_also_if_durable(host: Host) -> None:
    with host.up() as broker:
        for setting in ({"last_value": True}, {"non_destructive": True}, {"duplicate_ids": 10}):
            with pytest.raises(InvalidArgument):
                broker.declare_queue("no", durable=True, when_full="page", **setting)
        queue = declare(broker)
        with pytest.raises(InvalidArgument, match="without an id"):
            queue.publish(b"x", message_id="1")


def test_a_disk_with_room_is_not_full_because_it_was_for_the_last_pager(
    vhost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve, may_serve = Paged.serve, Event()

    def is_held_up(paged: Paged) -> tuple[int, bool]:
        assert may_serve.wait(PATIENCE)
        return serve(paged)

    with (
        small_disk(tmp_path / "disk", 16 << 20) as disk,
        shmbroker.connect(f"shm://{vhost}") as broker,
    ):
        with Pager(broker, disk / "pages", page_bytes=PAGE_BYTES):
            queue = broker.declare_queue("orders", slots=SLOTS, when_full="page")
            queue.publish_many([bytes(1000)] * 2 * SLOTS)
            eventually(lambda: pages(disk / "pages"))
            fill(disk)
            with pytest.raises(DiskFull):
                queue.publish_many([bytes(1000)] * (1 << 14))
        empty(disk)
        monkeypatch.setattr(Paged, "serve", is_held_up)
        with Pager(broker, disk / "pages", page_bytes=PAGE_BYTES):
            try:
                with pytest.raises(QueueFull):
                    while True:
                        queue.publish(b"as many as there is room for", timeout=0)
            finally:
                may_serve.set()
            queue.publish(b"one more", timeout=PATIENCE)
