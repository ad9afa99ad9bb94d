"""python -m shmbroker.perf.micro.sink: how fast a stream of records is poured into a ring.

    a buffer of records ──► sink ──► queue ──► (received by the same thread, its time not counted)

The baseline is publish_many of the same bodies, and memcpy of the same bytes.
"""

from __future__ import annotations

import argparse
import struct
import sys
import time
from collections.abc import Callable
from statistics import median

from shmbroker import Queue, connect, vhost
from shmbroker.core import layout as at
from shmbroker.ipc.journal import records
from shmbroker.ipc.sink.sink import Sink
from shmbroker.perf.machine.workspace import unique_token

ORIGIN = bytes(range(16))
HEAD = struct.Struct("<IIIIQQ")
CHUNK = struct.Struct("<qqqq")
ROUNDS = 200
BUFFER_BYTES = 256 << 10
SLOTS = 1 << 14


def buffer_of(count: int, size: int) -> bytearray:
    """So many records of messages of this size, at positions from 0 on."""
    mark = at.MARK_MAGIC << at.MARK_MAGIC_SHIFT
    body = bytes(size)
    length = CHUNK.size + size
    inside = CHUNK.pack(size << at.SHAPE_BODY_SHIFT, 0, 1, mark) + body + bytes(-length % 8)
    return bytearray(
        b"".join(
            HEAD.pack(0, 0, length, 0, size, records.MESSAGE << 56 | position) + inside
            for position in range(count)
        )
    )


def move_on(buffer: bytearray, count: int) -> None:
    """The same records at the positions behind."""
    step = len(buffer) // count
    for start in range(HEAD.size - 8, len(buffer), step):
        (where,) = struct.unpack_from("<Q", buffer, start)
        struct.pack_into("<Q", buffer, start, where + count)


def drained(queue: Queue, count: int) -> None:
    while count > 0:
        count -= len(queue.receive_many(count, timeout=0))


def seconds(work: Callable[[], object], after: Callable[[], None]) -> float:
    """What it takes, in the median of many times."""
    spent = []
    for _ in range(ROUNDS):
        before = time.perf_counter()
        work()
        spent.append(time.perf_counter() - before)
        after()
    return median(spent)


def measure(queue: Queue, sink: Sink, size: int, wanted: int) -> str:
    sink.to_queue(queue, size)
    count = min(SLOTS, wanted // (HEAD.size + CHUNK.size + size))
    buffer, bodies = buffer_of(count, size), [bytes(size)] * count
    target = memoryview(bytearray(len(buffer)))

    def pour() -> None:
        assert sink.pour(buffer).appended == count

    def poured() -> None:
        drained(queue, count)
        move_on(buffer, count)

    def copy() -> None:
        target[:] = buffer

    messages = count / seconds(pour, poured)
    baseline = count / seconds(lambda: queue.publish_many(bodies), lambda: drained(queue, count))
    memory = len(buffer) / seconds(copy, lambda: None)
    return (
        f"{size:5} bytes  sink {messages / 1e6:6.1f} million/s"
        f"  publish_many {baseline / 1e6:6.1f} million/s"
        f"  records {messages * len(buffer) / count / memory:5.0%} of memcpy's"
        f" {memory / 1e9:.1f} GB/s\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=BUFFER_BYTES, help="of the buffer")
    wanted: int = parser.parse_args().bytes
    token = unique_token("sink")
    try:
        with connect(f"shm://{token}", create=True) as broker, Sink(broker, ORIGIN) as sink:
            for size in (64, 1024):
                queue = broker.declare_queue(f"to-{size}", slots=SLOTS)
                sys.stdout.write(measure(queue, sink, size, wanted))
    finally:
        vhost.delete(token, force=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
