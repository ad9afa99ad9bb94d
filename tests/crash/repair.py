"""How long a message is gone whose consumer is killed: from kill -9 until another waiter has it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import shmbroker
from shmbroker import vhost
from tests.crash.process import Process

URL = "shm://{}"
QUEUE = "held"
READY = b"!"


@dataclass(frozen=True, slots=True)
class Measured:
    has_tender: bool
    ms: list[float]

    def __str__(self) -> str:
        ms = sorted(self.ms)
        return (
            f"{'with' if self.has_tender else 'without'} a tender: median {median(ms):.2f} ms, "
            f"best {ms[0]:.2f} ms, worst {ms[-1]:.2f} ms, of {len(ms)}"
        )


def measure(times: int) -> Iterator[Measured]:
    for has_tender in (True, False):
        name = f"test-repair-{os.getpid()}"
        vhost.create(name, arena_bytes=1 << 20)
        try:
            with TemporaryDirectory() as folder:
                yield Measured(has_tender, list(_measure(name, times, has_tender, Path(folder))))
        finally:
            with suppress(shmbroker.NotFound):
                vhost.delete(name, force=True)


def _measure(name: str, times: int, has_tender: bool, folder: Path) -> Iterator[float]:
    with shmbroker.connect(URL.format(name)) as broker:
        broker.declare_queue(QUEUE, slots=8)
    ready, tell = os.pipe()
    processes = [Process(lambda: _wait(name, tell), folder / "waiter")]
    try:
        if has_tender:
            processes.append(Process(lambda: _tend(name), folder / "tender"))
        assert os.read(ready, 1) == READY
        for _ in range(times):
            yield _one(name, ready, tell, folder)
    finally:
        for process in processes:
            process.kill()
        os.close(ready)
        os.close(tell)


def _one(name: str, ready: int, tell: int, folder: Path) -> float:
    """Somebody takes the message before it is published to those who wait: it holds it, and dies."""
    took, hold = os.pipe()
    with shmbroker.connect(URL.format(name)) as broker:
        queue = broker.queue(QUEUE)
        queue.pause()
        queue.publish(b"held")
    holder = Process(lambda: _hold(name, hold), folder / "holder")
    try:
        assert os.read(took, 1) == READY
        time.sleep(0.05 + time.monotonic_ns() % 100 / 1000)  # at any moment of the waiter's sleep
        killed = time.monotonic_ns()
    finally:
        holder.kill()
        os.close(took)
        os.close(hold)
    arrived = int.from_bytes(os.read(ready, 8), "little")
    return (arrived - killed) / 1e6


def _hold(name: str, tell: int) -> int:
    with shmbroker.connect(URL.format(name)) as broker:
        queue = broker.queue(QUEUE)
        queue.resume()
        message = queue.get()
        os.write(tell, READY)
        time.sleep(60)
        message.ack()
    return 1


def _wait(name: str, tell: int) -> int:
    with shmbroker.connect(URL.format(name)) as broker:
        queue = broker.queue(QUEUE)
        os.write(tell, READY)
        while True:
            message = queue.get()
            now = time.monotonic_ns()
            message.ack()
            os.write(tell, now.to_bytes(8, "little"))


def _tend(name: str) -> int:
    with shmbroker.connect(URL.format(name)) as broker:
        while True:
            broker.tend(10)
