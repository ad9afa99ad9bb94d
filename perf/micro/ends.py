"""python -m shmbroker.perf.micro.ends: what a second end costs that is some way off.

    publishers ──► ring ──► journaler ──► disk
                                 └──────► end, which answers after 20 ms

Durable publishes with many outstanding, with the disk alone and with the end, in turns: the rate,
and how long a confirm takes of one message at a time.  Both get a frame at once, so that is the
20 ms and what is in front of the write, and not the disk's time on top.  The consumer checks that
nothing is missing and that all of it is in order.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median

from shmbroker import ConnectionClosed, Queue, connect, vhost
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.journal.end import End
from shmbroker.perf.machine.machine import machine
from shmbroker.perf.machine.process import Process
from shmbroker.perf.machine.workspace import unique_token

ANSWER_S = 0.02
QUEUE = "orders"
BODY_BYTES = 64
BATCH = 256
SLOTS = 1 << 17
ARENA_BYTES = 1 << 30
BYTES_MAX = 256 << 20
PATIENCE_S = 30
SINGLES = 50
RATE_MIN = 0.9
CONFIRM_MAX_S = 0.01
"""Above the answer and a confirm of the disk alone."""


class Far:
    """An end that is done with each frame so long after it was told of it."""

    def __init__(self, journaler: Journaler, answer_s: float = ANSWER_S) -> None:
        self.answer_s = answer_s
        self.end = End(journaler, "far", timeout=PATIENCE_S, bytes_max=BYTES_MAX)
        self.most = 0
        self._due: deque[tuple[float, int]] = deque()
        self._thread = threading.Thread(target=self._answer)
        self._ends = False
        self._thread.start()

    def _answer(self) -> None:
        while not self._ends:
            wait = self._due[0][0] - time.monotonic() if self._due else 0.1
            try:
                if frame := self.end.read(max(wait, 0)):
                    self._due.append((time.monotonic() + self.answer_s, frame.number))
                    self.most = max(self.most, len(self._due))
                done = 0
                while self._due and self._due[0][0] <= time.monotonic():
                    done = self._due.popleft()[1]
                if done:
                    self.end.done(done)
            except ConnectionClosed:
                return

    def close(self) -> None:
        self._ends = True
        self._thread.join()
        self.end.close()


def consume(token: str, count: int) -> int:
    """In a process of its own: all that comes, in order."""
    with connect(f"shm://{token}") as broker:
        queue, seen = broker.queue(QUEUE), 0
        while seen < count:
            for body in queue.receive_many(4 * BATCH, timeout=PATIENCE_S):
                number = int.from_bytes(body[:8], "little")
                assert number == seen, f"{number} came instead of {seen}"
                seen += 1
    return 0


def rate(queue: Queue, bodies: list[list[bytes]]) -> float:
    """Messages a second, all of them confirmed; as many outstanding as the ring has slots."""
    before = time.perf_counter()
    for batch in bodies:
        queue.publish_many(batch, confirm="shm", timeout=PATIENCE_S)
    queue.confirm(timeout=PATIENCE_S)
    return sum(map(len, bodies)) / (time.perf_counter() - before)


def confirm_s(queue: Queue, numbers: Iterator[int]) -> float:
    """The median of one message at a time."""
    times = []
    for _ in range(SINGLES):
        before = time.perf_counter()
        queue.publish(body_of(next(numbers)), timeout=PATIENCE_S)
        times.append(time.perf_counter() - before)
    return median(times)


def body_of(number: int) -> bytes:
    return number.to_bytes(8, "little") * (BODY_BYTES // 8)


def measured(queue: Queue, numbers: Iterator[int], batches: int) -> tuple[float, float]:
    bodies = [[body_of(next(numbers)) for _ in range(BATCH)] for _ in range(batches)]
    return rate(queue, bodies), confirm_s(queue, numbers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=4_000, help="of 256 messages, each round")
    given = parser.parse_args()
    token, say = unique_token("ends"), sys.stdout.write
    described, numbers = machine([]), itertools.count()
    say(f"{described['cpu']}, Linux {described['kernel']}; folder {given.folder}\n")
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=given.folder)))
        vhost.create(token, arena_bytes=ARENA_BYTES)
        stack.callback(vhost.delete, token, force=True)
        broker = stack.enter_context(connect(f"shm://{token}"))
        queue = broker.declare_queue(QUEUE, durable=True, slots=SLOTS)
        count = 2 * given.rounds * (given.batches * BATCH + SINGLES)
        consumer = Process(lambda: consume(token, count), work / "errors")
        stack.callback(consumer.kill)
        journaler = stack.enter_context(Journaler(work))
        journaler.start(broker, 1)
        alone, far, most = [], [], 0
        for _ in range(given.rounds):
            alone.append(measured(queue, numbers, given.batches))
            with closing(Far(journaler)) as end:
                far.append(measured(queue, numbers, given.batches))
                most = max(most, end.most)
        assert consumer.has_ended(PATIENCE_S), "the consumer is missing something"
        assert consumer.status == 0, consumer.errors.read_text()
    kept = median(with_it[0] / without[0] for with_it, without in zip(far, alone, strict=True))
    disk_s, both_s = median(r[1] for r in alone), median(r[1] for r in far)
    good = kept >= RATE_MIN and most > 1
    good &= ANSWER_S <= both_s <= ANSWER_S + disk_s + CONFIRM_MAX_S
    told = "" if good else "  <- misses its target"
    say(f"disk alone:   {median(r[0] for r in alone):>10,.0f}/s,"
        f" a confirm {disk_s * 1e3:.2f} ms\n"
        f"with the end: {median(r[0] for r in far):>10,.0f}/s ({kept:.2f} x),"
        f" a confirm {both_s * 1e3:.2f} ms;"
        f" up to {most} frames in flight\n"
        f"{count:,} messages came in order{told}\n")  # fmt: skip
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
