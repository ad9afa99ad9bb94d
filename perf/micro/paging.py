"""python -m shmbroker.perf.micro.paging: many more messages than there is memory for, in and out.

    producer ──► inbox ──► pager ──► files ──► ring ──► consumer

First all are published, with nobody there to take any; then all are taken.  Three processes, of
which the pager's is that of a broker.  With --durable there is a journal, too, and who publishes
waits until each batch is on disk.  Memory is what the segments of the vhost have behind them,
in whole pages of tmpfs, looked at all the time.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from struct import Struct

from shmbroker import Broker, connect, vhost
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.paging.pager import Pager
from shmbroker.perf.machine.child import child
from shmbroker.perf.machine.workspace import unique_token

MESSAGES = 10_000_000
BODY_BYTES = 64
MEMORY_BYTES = 64 << 20
SLOTS = 1 << 16
BATCH = 256
RATE_MIN = 100_000.0
QUEUE = "orders"
NUMBER = Struct("<q")


def memory_bytes(token: str) -> int:
    """What the segments of a vhost have behind them."""
    there = Path("/dev/shm").glob(f"shmbroker.{token}.*")
    return sum(path.stat().st_blocks * 512 for path in there)


class Memory:
    """The most that a vhost has ever had, looked at in a thread of its own."""

    def __init__(self, token: str) -> None:
        self.most = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(token,))
        self._thread.start()

    def _watch(self, token: str) -> None:
        while not self._ended.wait(0.01):
            self.most = max(self.most, memory_bytes(token))

    def end(self) -> int:
        self._ended.set()
        self._thread.join()
        return self.most


@contextmanager
def journaling(broker: Broker, folder: Path) -> Iterator[None]:
    folder.mkdir()
    with Journaler(folder) as journaler:
        journaler.start(broker, 1)
        yield


def produce(url: str, messages: int, tell: int) -> None:
    """Publish all, and tell how long that took."""
    rest = bytes(BODY_BYTES - NUMBER.size)
    with connect(url, name="producer") as broker:
        queue = broker.queue(QUEUE)
        begin = time.monotonic()
        for first in range(0, messages, BATCH):
            end = min(first + BATCH, messages)
            queue.publish_many([NUMBER.pack(number) + rest for number in range(first, end)])
        os.write(tell, f"{time.monotonic() - begin}".encode())


def consume(url: str, messages: int, tell: int) -> None:
    """Take all, and tell how long that took, and how many were not the next one."""
    wrong = number = 0
    with connect(url, name="consumer") as broker:
        queue = broker.queue(QUEUE)
        begin = time.monotonic()
        while number < messages:
            for body in queue.receive_many(BATCH, timeout=60):
                wrong += NUMBER.unpack_from(body)[0] != number
                number += 1
        os.write(tell, f"{time.monotonic() - begin} {wrong}".encode())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m shmbroker.perf.micro.paging")
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--durable", action="store_true", help="each batch is confirmed on disk")
    parser.add_argument(
        "--folder", type=Path, help="where the store is made: by itself a temporary one"
    )
    asked = parser.parse_args(arguments)
    messages = asked.messages
    token = unique_token("paging")
    # ring, inbox and arena together
    vhost.create(token, arena_bytes=MEMORY_BYTES - 2 * SLOTS * 64)
    told, tell = os.pipe()
    with (
        tempfile.TemporaryDirectory(dir=asked.folder) as folder,
        connect(f"shm://{token}", name="broker") as broker,
        journaling(broker, Path(folder) / "journal") if asked.durable else nullcontext(),
        Pager(broker, Path(folder) / "pages"),
    ):
        queue = broker.declare_queue(QUEUE, slots=SLOTS, durable=asked.durable, when_full="page")
        memory = Memory(token)
        try:
            with child(lambda: produce(f"shm://{token}", messages, tell)):
                into = float(os.read(told, 64))
            seen = queue.statistics()
            with child(lambda: consume(f"shm://{token}", messages, tell)):
                seconds, count = os.read(told, 64).split()
            out_of, wrong = float(seconds), int(count)
        finally:
            most = memory.end()
    vhost.delete(token, force=True)
    say = sys.stdout.write
    say(f"in            {messages:,} messages of {BODY_BYTES} bytes, {messages / into:,.0f}/s\n")
    say(f"paged         {seen.paged:,} messages, {seen.paged_bytes / 1e6:,.0f} MB in files\n")
    say(f"out           {messages / out_of:,.0f}/s, {wrong} not in order\n")
    say(f"memory        {most / 2**20:.1f} MiB of segments at most\n")
    bounded = most <= MEMORY_BYTES + (8 << 20)  # catalog and participants
    is_fast = messages / max(into, out_of) >= RATE_MIN
    return 0 if wrong == 0 and bounded and is_fast else 1


if __name__ == "__main__":
    sys.exit(main())
