"""The journaler sleeps on one bell, however many durable queues it follows."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import shmbroker
from shmbroker import Broker, Queue
from shmbroker.core import layout
from shmbroker.ipc._native import lib
from tests.support.host import PATIENCE, after_the_host_died, journaling

MANY = 300
"""More than are looked at in each turn."""
FOLLOWER = 1 << 32 + layout.FOLLOWER_JOURNALER
"""The journaler's bit in the bell of a ring."""


class Word:
    def __init__(self, memory: mmap.mmap, at: int) -> None:
        self._memory, self._at = memory, at

    @property
    def value(self) -> int:
        return int.from_bytes(self._memory[self._at : self._at + 8], "little")

    @value.setter
    def value(self, value: int) -> None:
        self._memory[self._at : self._at + 8] = value.to_bytes(8, "little")


@contextmanager
def word(vhost: str, kind: str, at: int) -> Iterator[Word]:
    (path,) = Path("/dev/shm").glob(f"shmbroker.{vhost}.{kind}")
    with path.open("r+b") as file, mmap.mmap(file.fileno(), layout.RING_SLOTS_START) as memory:
        yield Word(memory, at)


@contextmanager
def bell_of(broker: Broker, queue: Queue) -> Iterator[Word]:
    index: int = lib.sb_queue_reference(queue._queue)
    row = index & layout.REFERENCE_INDEX_MASK
    generation = index >> layout.REFERENCE_INDEX_BITS
    ring = f"queue-{row}-{generation}"
    with word(broker.vhost, ring, layout.RING_SUBSCRIBER_BELL_AT) as bell:
        yield bell


def rings_for(broker: Broker, queue: Queue, *, armed: bool) -> bool:
    """Whether publishing rings the journaler's bell, if its bit is in the queue's, or not."""
    at = layout.ARENA_FOLLOWERS_AT + layout.FOLLOWER_JOURNALER * layout.PAIR_BYTES
    with word(broker.vhost, "arena", at) as bell, bell_of(broker, queue) as own:
        bell.value = 1
        own.value = FOLLOWER if armed else 0
        queue.publish(b"x", confirm="shm")
        return bell.value == 0


def test_who_publishes_rings_the_journaler_if_it_follows_the_queue(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        durable = broker.declare_queue("durable", durable=True)
        assert not rings_for(broker, durable, armed=False)
        assert rings_for(broker, durable, armed=True)


@contextmanager
def many_followed(vhost: str, folder: Path) -> Iterator[list[Queue]]:
    """Of which each has a confirmed message."""
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, folder, segment=8 << 20):
        queues = [broker.declare_queue(f"q{each}", durable=True, slots=64) for each in range(MANY)]
        for queue in queues:
            queue.publish(b"first", timeout=PATIENCE)
        yield queues


def publish_unheard(broker: Broker, queue: Queue) -> int:
    """As one who is killed when he has taken the ring's bell, and before he has told anybody."""
    with bell_of(broker, queue) as bell:
        end = monotonic() + PATIENCE
        while not bell.value & FOLLOWER and monotonic() < end:
            sleep(0.001)
        bell.value = 0
        return queue.publish(b"unheard", confirm="shm")


def journaled(queue: Queue) -> int:
    return next(gate.position for gate in queue.gates() if gate.kind == "journal")


def test_a_turn_looks_at_queues_that_have_rung(vhost: str, tmp_path: Path) -> None:
    """Which it need not: what nobody was told of is found a moment later, not in this turn."""
    with many_followed(vhost, tmp_path) as queues, shmbroker.connect(f"shm://{vhost}") as broker:
        found_later = 0
        for _ in range(20):
            position = publish_unheard(broker, queues[3])
            queues[150].publish(b"heard", timeout=PATIENCE)
            found_later += journaled(queues[3]) <= position
            end = monotonic() + PATIENCE
            while journaled(queues[3]) <= position and monotonic() < end:
                sleep(0.001)
            with queues[3].get(), queues[150].get():
                pass
        assert found_later > 0


def test_a_message_of_one_who_was_killed_while_ringing_is_confirmed_soon(
    vhost: str, tmp_path: Path
) -> None:
    with many_followed(vhost, tmp_path) as queues, shmbroker.connect(f"shm://{vhost}") as broker:
        for queue in queues[::50]:
            position, begun = publish_unheard(broker, queue), monotonic()
            while journaled(queue) <= position and monotonic() - begun < PATIENCE:
                sleep(0.001)
            assert journaled(queue) > position


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
