"""How long a message is gone whose consumer is killed: from kill -9 until another waiter has it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory

import shmbroker
from shmbroker import vhost
from shmbroker.perf.machine.process import Process

QUEUE = "held"
SLICE_SECONDS = 0.1
"""How long a waiter sleeps before it looks what the dead have left."""


@dataclass(frozen=True, slots=True)
class Measured:
    has_repairer: bool
    ms: list[float]

    def __str__(self) -> str:
        ms = sorted(self.ms)
        return (
            f"{'with' if self.has_repairer else 'without'} a repairer: median {median(ms):.2f} ms, "
            f"best {ms[0]:.2f} ms, worst {ms[-1]:.2f} ms, of {len(ms)}"
        )


def measure(times: int) -> Iterator[Measured]:
    for has_repairer in (True, False):
        name = f"test-repair-{os.getpid()}"
        vhost.create(name, arena_bytes=1 << 20)
        try:
            with TemporaryDirectory() as folder:
                yield Measured(
                    has_repairer, list(_measure(name, times, has_repairer, Path(folder)))
                )
        finally:
            with suppress(shmbroker.NotFound):
                vhost.delete(name, force=True)


class Pipe:
    """Words from one process to another."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def tell(self, word: int = 0) -> None:
        os.write(self._write, word.to_bytes(8, "little"))

    def heard(self) -> int:
        return int.from_bytes(os.read(self._read, 8), "little")

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)


def _measure(name: str, times: int, has_repairer: bool, folder: Path) -> Iterator[float]:
    random = Random(times)
    with ExitStack() as stack, shmbroker.connect(f"shm://{name}") as broker:
        queue = broker.declare_queue(QUEUE, slots=8)
        go, said = Pipe(), Pipe()
        for pipe in (go, said):
            stack.callback(pipe.close)

        def begin(role: Callable[[str, Pipe, Pipe], int]) -> Process:
            process = Process(lambda: role(name, go, said), folder / role.__name__)
            stack.callback(process.kill)
            return process

        if has_repairer:
            begin(_repair)
            said.heard()
        waiter = begin(_wait)
        said.heard()
        for _ in range(times):
            queue.publish(b"held")
            holder = begin(_hold)
            said.heard()  # it holds the message: now there is nothing for the waiter
            go.tell()
            time.sleep(SLICE_SECONDS * (1 + random.random()))  # asleep, at any moment of its slice
            killed = time.monotonic_ns()
            holder.kill()
            yield (said.heard() - killed) / 1e6
        assert not waiter.has_ended()


def _hold(name: str, _go: Pipe, said: Pipe) -> int:
    with shmbroker.connect(f"shm://{name}") as broker:
        message = broker.queue(QUEUE).get()
        said.tell()
        time.sleep(60)
        message.ack()
    return 1


def _wait(name: str, go: Pipe, said: Pipe) -> int:
    with shmbroker.connect(f"shm://{name}") as broker:
        queue = broker.queue(QUEUE)
        said.tell()
        while True:
            go.heard()
            message = queue.get()
            now = time.monotonic_ns()
            assert message.deliveries == 1
            message.ack()
            said.tell(now)


def _repair(name: str, _go: Pipe, said: Pipe) -> int:
    with shmbroker.connect(f"shm://{name}") as broker:
        said.tell()
        while True:
            broker.repair_for(10)
