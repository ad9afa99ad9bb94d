"""One process that meets very many queues: its memory and its mappings stay what they are.

    python -m tests.crash.many_queues [QUEUES] [REQUESTS] [AGAIN]

A million queues are declared, used and deleted through one connection, 100,000 requests answered,
and 20,000 times a queue that is open here is deleted and made again by others, with threads that
call in.  Told at several points: seconds, mappings, resident memory.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import shmbroker
from shmbroker import Broker
from tests.conftest import vhost_for_a_while

ARENA_BYTES = 64 << 20
POINTS = 10
MAPPINGS_MORE_MAX = 20
KIB_MORE_MAX = 4096


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def mappings() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


def resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


class Points:
    """What is told on the way, and whether it stays the same."""

    def __init__(self, what: str, count: int) -> None:
        self._what, self._every = what, max(1, count // POINTS)
        self._start = time.monotonic()
        self._first: tuple[int, int] | None = None
        self.is_flat = True

    def pass_by(self, done: int) -> None:
        if done % self._every:
            return
        now = mappings(), resident_kib()
        seconds = time.monotonic() - self._start
        tell(f"{self._what} {done:>9,}  {seconds:8.1f} s  {now[0]} mappings  {now[1]:,} KiB")
        if self._first is None and done:
            self._first = now
        if self._first is not None:
            self.is_flat &= now[0] - self._first[0] <= MAPPINGS_MORE_MAX
            self.is_flat &= now[1] - self._first[1] <= KIB_MORE_MAX


def declare_and_delete(broker: Broker, count: int) -> bool:
    points = Points("queues", count)
    for number in range(count + 1):
        points.pass_by(number)
        queue = broker.declare_queue(f"q{number % 7}", slots=8)
        queue.publish(b"here")
        queue.get(timeout=0).ack()
        broker.delete_queue(queue.name)
    return points.is_flat


def subscribe(broker: Broker, count: int) -> bool:
    points = Points("subscriptions", count)
    exchange = broker.declare_exchange("news", "fanout")
    for number in range(count + 1):
        points.pass_by(number)
        with broker.subscription("reader", exchange="news", slots=8) as subscription:
            exchange.publish(b"read")
            assert subscription.receive(timeout=0) == b"read"
    return points.is_flat


def temporary(broker: Broker, count: int) -> bool:
    points = Points("temporary queues", count)
    for number in range(count + 1):
        points.pass_by(number)
        queue = broker.temporary_queue(slots=8)
        queue.publish(b"here")
        assert queue.receive(timeout=0) == b"here"
        broker.delete_queue(queue.name)
    return points.is_flat


def ask(broker: Broker, url: str, count: int) -> bool:
    points = Points("requests", count)
    queue = broker.declare_queue("service", slots=64)

    def serve() -> None:
        for message in queue.consume():
            if message.body == b"end":
                message.ack()
                return
            message.reply(b"reply")

    server = threading.Thread(target=serve)
    server.start()
    client = None
    for number in range(count + 1):
        points.pass_by(number)
        if number % 100 == 0:  # another requester, with queues of its own
            if client:
                client.close()
            client = shmbroker.connect(url)
            service = client.queue("service")
        assert service.request(b"well?", timeout=60).body == b"reply"
    queue.publish(b"end")
    server.join()
    if client:
        client.close()
    return points.is_flat


def meet_again(broker: Broker, url: str, count: int) -> bool:
    points = Points("made again", count)
    is_over = threading.Event()

    def call_in() -> None:
        while not is_over.is_set():
            try:
                queue = broker.queue("again")
                while True:
                    queue.publish(b"here", timeout=0)
                    queue.get(timeout=0).ack()
                    queue.statistics()
            except shmbroker.Error:
                pass  # it was deleted, is full, or another has taken the message

    threads = [threading.Thread(target=call_in) for _ in range(4)]
    with shmbroker.connect(url) as other:
        for each in threads:
            each.start()
        for number in range(count + 1):
            points.pass_by(number)
            other.declare_queue("again", slots=16)
            other.delete_queue("again", force=True)
        is_over.set()
    for each in threads:
        each.join()
    return points.is_flat


def main(queues: int = 1_000_000, requests: int = 100_000, again: int = 20_000) -> int:
    with vhost_for_a_while() as vhost:
        url = f"shm://{vhost}"
        with shmbroker.connect(url, create=True, arena_bytes=ARENA_BYTES) as broker:
            is_flat = meet_again(broker, url, again)
            is_flat &= subscribe(broker, max(1, queues // 100))
            is_flat &= temporary(broker, max(1, queues // 100))
            is_flat &= ask(broker, url, requests)
            is_flat &= declare_and_delete(broker, queues)
    tell("flat" if is_flat else "it grows")
    return 0 if is_flat else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
