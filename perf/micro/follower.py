"""python -m shmbroker.perf.micro.follower: one thread that follows thousands of queues.

    publisher ──> one of 2,000 plain and 2,000 durable queues ──> follower, asleep ──> buffer

How long a single message takes until the follower has it in its buffer, beside a follower of one
queue; what the follower costs while nothing comes; and how fast it reads a full ring.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, monotonic_ns, process_time, sleep

from shmbroker import Broker, connect, vhost
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.follower.follower import Follower
from shmbroker.perf.machine.workspace import unique_token

BODY_BYTES = 64
SLOTS = 16
RING_SLOTS = 1 << 15
ARENA_BYTES = 1 << 30
PAUSE_S = 0.003
"""Between two messages: everybody sleeps again."""
PATIENCE_S = 10
USED = 20
"""Of the queues: the first publish into one opens it, which is not what is measured."""
WARM_UP = 2 * USED


@contextmanager
def child(work: Callable[[], None]) -> Iterator[None]:
    """What runs in a process of its own meanwhile."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    yield
    os.waitpid(pid, 0)


def publish_now_and_then(token: str, names: list[str], times: int) -> None:
    with connect(f"shm://{token}") as broker:
        queues = [broker.queue(name) for name in names[:: max(1, len(names) // USED)]]
        sleep(0.2)
        for each in range(WARM_UP + times):
            sleep(PAUSE_S)
            queue = queues[each * 7919 % len(queues)]
            body = (monotonic_ns() if each >= WARM_UP else 0).to_bytes(8, "little") * (
                BODY_BYTES // 8
            )
            queue.publish(body, timeout=PATIENCE_S)
            with queue.get(timeout=PATIENCE_S):  # the follower takes nothing
                pass


def delivered_ns(broker: Broker, token: str, names: list[str], times: int) -> float:
    """From before the publish until the follower has the message, in the median."""
    took: list[float] = []
    came = 0
    with Follower(broker, "bench") as follower:
        for name in names:
            follower.add(broker.queue(name))
        while follower.read() is not None:
            follower.release_all()
        with child(lambda: publish_now_and_then(token, names, times)):
            while came < WARM_UP + times and follower.wait(PATIENCE_S):
                batch = follower.read()
                if batch is not None:  # of several that came together the last one counts
                    came += batch.messages
                    now, published = monotonic_ns(), int.from_bytes(batch.memory[-8:], "little")
                    if published:
                        took.append(now - published)
                    follower.release_all()
    assert came == WARM_UP + times, f"{came} of {WARM_UP + times} messages came"
    return statistics.median(took)


def idle_share(broker: Broker, names: list[str], seconds: float) -> float:
    """Of a core, while nothing comes."""
    with Follower(broker, "bench") as follower:
        for name in names:
            follower.add(broker.queue(name))
        follower.wait(0.1)
        begun, used = monotonic(), process_time()
        while monotonic() - begun < seconds:
            follower.wait(seconds)
        return (process_time() - used) / (monotonic() - begun)


def read_rate(broker: Broker, rounds: int) -> float:
    """Messages a second, read into a buffer and released."""
    queue = broker.declare_queue("full", slots=RING_SLOTS)
    bodies = [bytes(BODY_BYTES)] * RING_SLOTS
    read, took = 0, 0.0
    with Follower(broker, "bench") as follower:
        follower.add(queue)
        for _ in range(rounds):
            published = queue.publish_many(bodies)
            queue.purge()  # all is done with, but for the follower
            begun, got = monotonic(), 0
            while (batch := follower.read()) is not None:
                got += batch.messages
            took += monotonic() - begun
            follower.release_all()
            assert got == published
            read += got
    return read / took


def measure(queues: int, times: int, seconds: float, folder: Path, token: str) -> str:
    with (
        connect(f"shm://{token}", create=True, arena_bytes=ARENA_BYTES) as broker,
        Journaler(folder) as journaler,
    ):
        plain = [f"plain-{each}" for each in range(queues)]
        durable = [f"durable-{each}" for each in range(queues)]
        for name in plain:
            broker.declare_queue(name, slots=SLOTS)
        broker.declare_queue("durable-one", durable=True, slots=SLOTS)
        with connect(f"shm://{token}", name="journal") as own:
            journaler.start(own, 1)
            one = delivered_ns(broker, token, plain[:1], times)
            one_durable = delivered_ns(broker, token, ["durable-one"], times)
            for name in durable:
                broker.declare_queue(name, durable=True, slots=SLOTS)
            sleep(1)
            among = delivered_ns(broker, token, plain + durable[:1], times)
            many = delivered_ns(broker, token, plain, times)
            many_durable = delivered_ns(broker, token, durable, times)
            journaler.stop()
        idle = idle_share(broker, plain + durable, seconds)
        rate = read_rate(broker, rounds=20)
    return (
        f"publish to buffer, median: plain {one / 1000:.1f} us of one queue,"
        f" {many / 1000:.1f} us of {queues:,} ({many / one:.2f} x; again {among / 1000:.1f} us);"
        f" durable {one_durable / 1000:.1f} us of one, {many_durable / 1000:.1f} us of"
        f" {queues:,} ({many_durable / one_durable:.2f} x)\n"
        f"idle, {2 * queues:,} queues: {idle:.2%} of a core\n"
        f"read: {rate / 1e6:.1f} million/s of {BODY_BYTES} bytes\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queues", type=int, default=2_000)
    parser.add_argument("--times", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=5)
    given = parser.parse_args()
    token = unique_token("follower")
    with tempfile.TemporaryDirectory() as folder:
        try:
            told = measure(given.queues, given.times, given.seconds, Path(folder), token)
        finally:
            vhost.delete(token, force=True)
    sys.stdout.write(told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
