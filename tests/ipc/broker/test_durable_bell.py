"""The journaler sleeps on one bell, however many durable queues it follows."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import shmbroker
from shmbroker import Broker, Queue
from shmbroker.core import layout
from shmbroker.ipc._native import lib
from tests.support.host import PATIENCE, after_the_host_died, journaling

MANY = 300
"""More than a thread can sleep on by bells of their own: 127."""


class Word:
    def __init__(self, memory: mmap.mmap, at: int) -> None:
        self._memory, self._at = memory, at

    @property
    def value(self) -> int:
        return int.from_bytes(self._memory[self._at : self._at + 8], "little")

    def arm(self) -> None:
        self._memory[self._at : self._at + 8] = (1).to_bytes(8, "little")


@contextmanager
def word(vhost: str, kind: str, at: int) -> Iterator[Word]:
    (path,) = Path("/dev/shm").glob(f"shmbroker.{vhost}.{kind}")
    with path.open("r+b") as file, mmap.mmap(file.fileno(), layout.RING_SLOTS_START) as memory:
        yield Word(memory, at)


def rings_for(broker: Broker, queue: Queue, *, armed: bool) -> bool:
    """Whether publishing rings the journaler's bell, when the queue's own was armed, or not."""
    index: int = lib.sb_queue_reference(queue._queue)
    row = index & layout.REFERENCE_INDEX_MASK
    generation = index >> layout.REFERENCE_INDEX_BITS
    with (
        word(broker.vhost, "arena", layout.ARENA_JOURNALER_BELL_AT) as bell,
        word(broker.vhost, f"queue-{row}-{generation}", layout.RING_SUBSCRIBER_BELL_AT) as own,
    ):
        bell.arm()
        if armed:
            own.arm()
        queue.publish(b"x", confirm="shm")
        return bell.value == 0


def test_who_publishes_rings_the_journaler_if_it_has_armed_the_queue(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        durable = broker.declare_queue("durable", durable=True)
        passing = broker.declare_queue("passing")
        assert not rings_for(broker, durable, armed=False)
        assert rings_for(broker, durable, armed=True)
        assert not rings_for(broker, passing, armed=True)


def test_many_durable_queues(vhost: str, tmp_path: Path) -> None:
    names = [f"q{number}" for number in range(MANY)]
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        journaling(vhost, tmp_path, segment=8 << 20),
    ):
        queues = [broker.declare_queue(name, durable=True, slots=2) for name in names]
        for queue in queues:
            queue.publish(queue.name.encode(), timeout=PATIENCE)
    with after_the_host_died(vhost, tmp_path, segment=8 << 20) as broker:
        for name in names:
            assert [each.body for each in broker.queue(name).browse()] == [name.encode()]
