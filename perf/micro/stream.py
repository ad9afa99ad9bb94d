"""python -m shmbroker.perf.micro.stream: a stream moves from one vhost to another on this host.

    publish_many ──► queue ──► follower ──► buffer ──► sink ──► queue ──► receive_many
    not counted      vhost A  └──────────── counted ────────────┘  vhost B    not counted

All of it in one thread on one processor.  The source is in memory, or durable and on disk already.
The baseline is memcpy of the same bodies, from as much memory to as much memory; and, because the
way leads through a buffer, memcpy through a buffer of that size.  What arrives is compared with
what was published, by content and order.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from shmbroker import Broker, Queue, QueueFull, connect, vhost
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.exchange.exchange import Exchange
from shmbroker.ipc.follower.follower import Follower
from shmbroker.ipc.sink.sink import Sink
from shmbroker.perf.machine.pinning import pin
from shmbroker.perf.machine.workspace import unique_token

ORIGIN = bytes(range(16))
BUFFER_BYTES = 512 << 10
"""Half of a second cache: what goes in and out needs the rest."""
ARENA_BYTES = 256 << 20
SLOTS = {64: 1 << 15, 1024: 1 << 12}
"""By the size of the bodies: some 4 MiB are on their way in each round."""
ROUNDS = 60
PATIENCE_S = 30


class Mover(Closable):
    """It goes on where the far end is.  Both ends outlive its death."""

    def __init__(self, near: Broker, far: Broker, source: Queue, target: Queue | Exchange) -> None:
        with ExitStack() as opened:
            self._sink = opened.enter_context(Sink(far, ORIGIN))
            if isinstance(target, Queue):
                position = self._sink.to_queue(target)
            else:
                position = self._sink.to_exchange(target)
            self._follower = opened.enter_context(
                Follower(near, "stream", lasting=True, room=BUFFER_BYTES)
            )
            self._follower.seek(self._follower.add(source), position)
            # what is known there needs no room here: in a full ring nothing more would come
            self._follower.release_all()
            opened.pop_all()

    def move(self, timeout: float | None = PATIENCE_S) -> int:
        """Move a batch, and wait for room so long: how many messages it had, 0 if none came."""
        batch = self._follower.read()
        if batch is None:
            return 0
        at = 0
        while at < len(batch.memory):
            poured = self._sink.pour(batch.memory[at:], timeout=timeout)
            if poured.bytes == 0:
                raise QueueFull(f"no room at the far end of a stream within {timeout} seconds")
            at += poured.bytes
        self._follower.release_all()
        return batch.messages

    def wait(self, timeout: float | None = None) -> bool:
        return self._follower.wait(timeout)

    def close(self) -> None:
        self._follower.close()
        self._sink.close()


@dataclass(frozen=True, slots=True)
class Figures:
    size: int
    durable: bool
    messages: float
    """A second."""
    memcpy: float
    """Bytes a second."""
    twice: float
    """The same through the buffer."""

    @property
    def share(self) -> float:
        return self.messages * self.size / self.memcpy

    def __str__(self) -> str:
        return (
            f"{self.size:5} bytes  {'durable' if self.durable else 'memory ':7} to memory"
            f"  {self.messages / 1e6:5.1f} million/s  {self.messages * self.size / 1e9:5.2f} GB/s,"
            f" {self.share:4.0%} of memcpy's {self.memcpy / 1e9:.1f} GB/s"
            f" (through a buffer: {self.twice / self.memcpy:.0%})"
        )


def numbered(count: int, size: int, first: int) -> list[bytes]:
    return [number.to_bytes(8, "little") * (size // 8) for number in range(first, first + count)]


def received(queue: Queue, count: int) -> list[bytes]:
    got: list[bytes] = []
    while len(got) < count:
        got += queue.receive_many(count - len(got), timeout=PATIENCE_S)
    return got


def copying(source: bytes, target: memoryview) -> float:
    began = perf_counter()
    target[:] = source
    return perf_counter() - began


def copying_twice(source: memoryview, buffer: memoryview, target: memoryview) -> float:
    began = perf_counter()
    for at in range(0, len(source), len(buffer)):
        part = min(len(buffer), len(source) - at)
        buffer[:part] = source[at : at + part]
        target[at : at + part] = buffer[:part]
    return perf_counter() - began


def measure(near: Broker, far: Broker, size: int, *, durable: bool, rounds: int) -> Figures:
    slots = SLOTS[size]
    name = f"{'durable' if durable else 'plain'}-{size}"
    source = near.declare_queue(name, slots=slots, durable=durable)
    target = far.declare_queue(name, slots=slots)
    memory, other = (memoryview(bytearray(slots * size)) for _ in range(2))
    buffer = memoryview(bytearray(BUFFER_BYTES))
    moving, copied, copied_twice = [], [], []
    with Mover(near, far, source, target) as mover:
        for each in range(rounds):
            bodies = numbered(slots, size, each * slots)
            source.publish_many(bodies, timeout=PATIENCE_S)
            source.purge()  # it is done with here, but for the follower
            moved, began = 0, perf_counter()
            while moved < slots:
                moved += mover.move()
            moving.append(perf_counter() - began)
            assert received(target, slots) == bodies, "what arrived is not what was published"
            copied.append(copying(b"".join(bodies), memory))
            copied_twice.append(copying_twice(memoryview(b"".join(bodies)), buffer, other))
    in_all = slots * size
    return Figures(
        size, durable, slots / median(moving), in_all / median(copied),
        in_all / median(copied_twice),
    )  # fmt: skip


@contextmanager
def two_vhosts() -> Iterator[tuple[Broker, Broker, str]]:
    tokens = [unique_token("stream") for _ in range(2)]
    try:
        with (
            connect(f"shm://{tokens[0]}", create=True, arena_bytes=ARENA_BYTES) as near,
            connect(f"shm://{tokens[1]}", create=True, arena_bytes=ARENA_BYTES) as far,
        ):
            yield near, far, tokens[0]
    finally:
        for token in tokens:
            vhost.delete(token, force=True)


def figures(rounds: int = ROUNDS) -> Iterator[Figures]:
    with (
        tempfile.TemporaryDirectory() as folder,
        two_vhosts() as (near, far, token),
        connect(f"shm://{token}", name="journal") as own,
        Journaler(Path(folder)) as journaler,
    ):
        journaler.start(own, 1)
        for durable in (False, True):
            for size in SLOTS:
                yield measure(near, far, size, durable=durable, rounds=rounds)
        journaler.stop()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args(arguments).rounds
    pin(0)
    for each in figures(rounds):
        sys.stdout.write(f"{each}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
