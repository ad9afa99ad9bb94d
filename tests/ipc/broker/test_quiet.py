"""A journaler that is quiet leaves what it has ready to who comes next, so its end is quick.

It goes on writing, and gets a segment when it needs one."""

from __future__ import annotations

import threading
from pathlib import Path

import shmbroker
from tests.support.host import PATIENCE, after_the_host_died, journaling
from tests.support.until import until

SEGMENT = 64 << 10
BODY = 4096


def files(folder: Path) -> tuple[int, int]:
    """Segments, and files that are to become some."""
    return len(list(folder.glob("*.journal"))), len(list(folder.glob("*.spare")))


def has_files(folder: Path, segments: int, spares: int) -> None:
    until(lambda: files(folder) == (segments, spares), lambda: files(folder))


def has_reserve(folder: Path) -> None:
    """It is made when the next segment is ready.  That has two names for a moment before."""
    until(lambda: any(folder.glob("*.reserve.spare")), lambda: files(folder))


def inodes(folder: Path, pattern: str = "*.[js]*") -> set[int]:
    return {each.stat().st_ino for each in folder.glob(pattern)}


def test_what_is_ready_is_for_who_comes_next(vhost: str, tmp_path: Path) -> None:
    """It becomes a segment and the reserve again; nothing is removed, and nothing is made."""
    folder = tmp_path / "journal"
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders", durable=True, slots=1024)
        with journaling(vhost, folder, segment=SEGMENT) as journaler:
            queue.publish(b"0", timeout=PATIENCE)
            has_reserve(folder)
            assert files(folder) == (2, 1)
            journaler.quiet()
        has_files(folder, 1, 2)
        left = inodes(folder)
        with journaling(vhost, folder, epoch=2, segment=SEGMENT):
            queue.publish(b"1", timeout=PATIENCE)
            has_files(folder, 3, 1)
            assert left < inodes(folder)
            assert len(inodes(folder)) == len(left) + 1, "the segment that it began with"


def test_it_writes_on_while_it_is_quiet(vhost: str, tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders", durable=True, slots=1024)
        with journaling(vhost, folder, segment=SEGMENT) as journaler:
            queue.publish(b"0 ", timeout=PATIENCE)
            journaler.quiet()
            for number in range(1, 3 * SEGMENT // BODY):
                queue.publish(b"%d " % number + bytes(BODY), timeout=PATIENCE)
            journaler.quiet()
    with after_the_host_died(vhost, folder, segment=SEGMENT) as broker:
        found = [bytes(each.body).split()[0] for each in broker.queue("orders").browse()]
    assert found == [b"%d" % number for number in range(3 * SEGMENT // BODY)]


def test_it_goes_on_however_often_it_is_to_be_quiet(vhost: str, tmp_path: Path) -> None:
    """Also while it waits for the next segment: that would be given back, or never made."""
    is_over = threading.Event()
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        journaling(vhost, tmp_path / "journal", segment=SEGMENT) as journaler,
    ):
        queue = broker.declare_queue("orders", durable=True, slots=1024)

        def quiets() -> None:
            while not is_over.is_set():
                journaler.quiet()

        quiet = threading.Thread(target=quiets)
        quiet.start()
        try:
            for _ in range(40 * SEGMENT // BODY):
                queue.publish(bytes(BODY), timeout=PATIENCE)
        finally:
            is_over.set()
            quiet.join()
