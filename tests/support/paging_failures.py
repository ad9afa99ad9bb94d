"""A disk that is full while a queue pages: with native/storage.c preloaded.

python -m tests.support.paging_failures VHOST FOLDER
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import shmbroker
from shmbroker import Broker, Queue
from shmbroker.ipc.base.errors import DiskFull
from shmbroker.ipc.paging.pager import Pager
from tests.support.refused import refused

BODY = bytes(1000)
NEARLY_FULL_S = 2
shim = ctypes.CDLL(None)


def room(count: int) -> None:
    shim.storage_room(ctypes.c_int64(count))


def said_of_room(broker: Broker) -> int:
    return sum(each.count for each in broker.errors() if "room on the disk again" in each.text)


def publish_while_it_is_nearly_full(queue: Queue, first: int) -> int:
    """It takes a write, and refuses the next one: how many messages were published."""
    published, end = 0, monotonic() + NEARLY_FULL_S
    while monotonic() < end:
        room(published % 2 * (4 << 20))
        queue.publish((first + published).to_bytes(4, "little") + BODY, timeout=10)
        published += 1
        sleep(0.01)
    return published


def main(vhost: str, folder: Path) -> int:
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        Pager(broker, folder, page_bytes=64 << 10) as pager,
    ):
        queue = broker.declare_queue("orders", slots=64, when_full="page")
        changes = pager.changes()
        room(200_000)
        published = 0
        with refused(DiskFull, match=r"queue 'orders' is full and pages, .* make room"):
            for _ in range(1 << 20):
                queue.publish(published.to_bytes(4, "little") + BODY)
                published += 1
        failure = next(changes)
        assert isinstance(failure, DiskFull)
        assert str(folder) in str(failure)
        with refused(DiskFull):
            queue.publish_many([BODY])
        with refused(DiskFull), broker.transaction() as transaction:
            transaction.publish(queue, BODY)
        assert 4096 < published < 6000, "the ring, the inbox, and 200 kB"
        # a full disk does not hold up what is there, nor what has room in memory afterwards
        for number in range(published - 100):
            assert queue.receive(timeout=10)[:4] == number.to_bytes(4, "little")
        first = published - 100
        for _ in range(1000):
            queue.publish(published.to_bytes(4, "little") + BODY, timeout=10)
            published += 1
        published += publish_while_it_is_nearly_full(queue, published)
        assert said_of_room(broker) <= 1, "it says at each write how the disk is"
        room(1 << 30)
        last = published + 10_000
        while published < last or pager.failure is not None:
            with suppress(DiskFull):  # until the pager has looked again
                queue.publish(published.to_bytes(4, "little") + BODY, timeout=10)
                published += 1
        assert next(changes) is None
        for number in range(first, published):
            assert queue.receive(timeout=10)[:4] == number.to_bytes(4, "little")
        said = [each.text for each in broker.errors()]
        assert any("No space left on device" in each for each in said), said
        assert any("there is room on the disk again" in each for each in said), said
    sys.stdout.write(f"{published} in order\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
