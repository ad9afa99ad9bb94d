"""A journaler that is quiet has nothing ready that its end would have to wait for, or to remove.

It goes on writing, and gets a segment when it needs one."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import shmbroker
from tests.support.host import PATIENCE, after_the_host_died, journaling

SEGMENT = 64 << 10
BODY = 4096


def files(folder: Path) -> tuple[int, int]:
    """Segments, and files that are to become some."""
    return len(list(folder.glob("*.journal"))), len(list(folder.glob("*.spare")))


def test_what_is_ready_goes_and_comes_when_it_is_needed(vhost: str, tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders", durable=True, slots=1024)
        with journaling(vhost, folder, segment=SEGMENT) as journaler:
            queue.publish(b"0", timeout=PATIENCE)
            until = time.monotonic() + PATIENCE
            while files(folder) != (2, 1):  # the next one is ready, and the reserve is set aside
                assert time.monotonic() < until, files(folder)
                time.sleep(0.01)  # it looks at a folder
            journaler.quiet()
            assert files(folder) == (1, 0)
            for number in range(1, 3 * SEGMENT // BODY):
                queue.publish(b"%d " % number + bytes(BODY), timeout=PATIENCE)
            journaler.quiet()
            journaler.stop()
            assert files(folder)[1] == 0
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
