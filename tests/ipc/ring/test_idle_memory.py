"""Memory that holds no message is there for whoever publishes next, whoever had it before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

import shmbroker
from shmbroker import ArenaFull, Broker, Empty, Queue, QueueFull
from shmbroker.ipc.vhost import vhost as vhosts

ARENA = 64 << 20
LARGE, SMALL = bytes(1 << 20), bytes(1000)
MOST = 40 << 20
"""Of an arena: neighbouring blocks are wanted, and each producer keeps some."""
SHARE = 1 << 20


@pytest.fixture
def name(vhost: str) -> str:
    vhosts.delete(vhost)
    vhosts.create(vhost, arena_bytes=ARENA)
    return vhost


def used(queue: Queue, body: bytes) -> None:
    """So much was there, and nothing is any more."""
    count = MOST // len(body)
    for _ in range(count):
        queue.publish(body)
    for _ in range(count):
        queue.receive(timeout=0)


@pytest.mark.parametrize("body", [LARGE, SMALL], ids=["large", "small"])
def test_another_queue_of_the_program_has_it(name: str, body: bytes) -> None:
    with shmbroker.connect(f"shm://{name}") as broker:
        for each in ("a", "b", "c"):
            used(broker.declare_queue(each, slots=1 << 16), body)


def test_a_batch_has_it(name: str) -> None:
    with shmbroker.connect(f"shm://{name}") as broker:
        used(broker.declare_queue("a"), LARGE)
        assert broker.declare_queue("b").publish_many([LARGE] * 40, timeout=0) == 40


@pytest.mark.parametrize("body", [LARGE, SMALL], ids=["large", "small"])
def test_another_program_has_it_while_the_first_one_does_nothing(name: str, body: bytes) -> None:
    with (
        shmbroker.connect(f"shm://{name}") as idle,
        shmbroker.connect(f"shm://{name}") as other,
        shmbroker.connect(f"shm://{name}") as server,
    ):
        for each in range(4):
            used(idle.declare_queue(f"a{each}", slots=1 << 16), body)
        wanted, published = other.declare_queue("b", slots=1 << 16), 0
        while published < MOST // len(body):
            try:
                wanted.publish(body)
                published += 1
            except ArenaFull:
                before = wanted.statistics().depth
                server.repair_for(0)  # as a broker does each second
                wanted.publish(body)
                published += 1
                assert wanted.statistics().depth > before


def loans(_: str, broker: Broker, queue: Queue) -> None:
    queue.loan(10).publish()


def commits(_: str, broker: Broker, queue: Queue) -> None:
    with broker.transaction() as transaction:
        transaction.publish(queue, b"x")


def moves(name: str, broker: Broker, queue: Queue) -> None:
    with shmbroker.connect(f"shm://{name}") as other:
        other.declare_queue("from").publish(b"x")
    assert broker.queue("from").move_to(queue) == 1


@pytest.mark.parametrize("does", [loans, commits, moves])
def test_a_share_is_of_what_holds_messages(
    name: str, does: Callable[[str, Broker, Queue], None]
) -> None:
    with shmbroker.connect(f"shm://{name}") as broker:
        queues = [
            broker.declare_queue(each, slots=4096, max_producer_bytes=SHARE) for each in ("a", "b")
        ]
        with suppress(QueueFull):
            while True:
                queues[0].publish(SMALL, timeout=0)
        with suppress(Empty):
            while True:
                queues[0].receive(timeout=0)
        does(name, broker, queues[1])
