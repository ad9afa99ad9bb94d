"""One bell for any number of queues: a follower sleeps, and is woken by any of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, process_time, sleep

import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.follower.follower import Follower
from shmbroker.ipc.vhost import vhost as vhosts
from tests.conftest import vhost_for_a_while
from tests.support.host import PATIENCE

QUEUES = 600
"""More than a set of rows has bits."""
SECONDS = 1.5


@pytest.fixture
def many() -> Iterator[Broker]:
    with vhost_for_a_while() as name:
        vhosts.create(name, arena_bytes=64 << 20)
        with shmbroker.connect(f"shm://{name}") as broker:
            for each in range(QUEUES):
                broker.declare_queue(f"q{each}", slots=4)
            yield broker


def voluntary() -> int:
    """How often this thread has slept."""
    status = Path(f"/proc/self/task/{threading.get_native_id()}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line[:4] == "volu")


def test_any_queue_wakes_it(many: Broker) -> None:
    with Follower(many, "far", follows="all") as follower:
        assert follower.read() is None
        for name in ("q0", "q511", "q599", "q0", "q0"):
            timer = threading.Timer(0.05, many.queue(name).publish, (name.encode(),))
            timer.start()
            begun = monotonic()
            assert follower.wait(PATIENCE)
            assert monotonic() - begun < 1, "it was found by looking at all, not rung"
            batch = follower.read()
            assert batch is not None
            assert bytes(batch.memory).count(name.encode()) == 1
            timer.join()


def test_it_sleeps_while_nothing_comes(many: Broker) -> None:
    with Follower(many, "far", follows="all") as follower:
        assert follower.read() is None
        slept, used = voluntary(), process_time()
        assert not follower.wait(SECONDS)
        assert voluntary() - slept < 20 * SECONDS
        assert process_time() - used < 0.1 * SECONDS


def test_a_queue_that_comes_wakes_it(many: Broker) -> None:
    with Follower(many, "far", follows="all") as follower:
        assert follower.read() is None
        timer = threading.Timer(0.05, lambda: many.declare_queue("new").publish(b"first"))
        timer.start()
        found = b""
        end = monotonic() + PATIENCE
        while b"first" not in found and monotonic() < end:
            follower.wait(PATIENCE)
            batch = follower.read()
            found += b"" if batch is None else bytes(batch.memory)
        timer.join()
        assert b"first" in found


def test_wait_any_does_not_poll_beyond_127_queues(many: Broker) -> None:
    control = ffi.new("int64_t *")
    queues = [many.queue(f"q{each}") for each in range(300)]
    waits = ffi.new("sb_wait[]", len(queues))
    for wait, queue in zip(waits, queues, strict=True):
        wait.queue, wait.position, wait.returned = queue._queue, lib.SB_A_MESSAGE, -1
    assert lib.sb_wait_any(waits, len(queues), control, 0, 1) == 0  # it opens all lanes
    slept = voluntary()
    assert lib.sb_wait_any(waits, len(queues), control, 0, int(SECONDS * 1e9)) == 0
    assert voluntary() - slept < 20 * SECONDS
    timer = threading.Timer(0.05, queues[250].publish, (b"x",))
    timer.start()
    begun = monotonic()
    assert lib.sb_wait_any(waits, len(queues), control, 0, PATIENCE * 1_000_000_000) == 1
    assert monotonic() - begun < 1
    assert waits[250].code == 0
    timer.join()


def test_a_dead_follower_leaves_its_bell_to_others(vhost: str) -> None:
    """There are few of them, and more processes than that come and go."""
    for _ in range(40):
        child = os.fork()
        if child == 0:
            broker = shmbroker.connect(f"shm://{vhost}")
            Follower(broker, "far")
            os._exit(0)
        os.waitpid(child, 0)
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders")
        sleep(0.1)
        with Follower(broker, "far") as follower:
            follower.add(queue)
            slept = voluntary()
            assert not follower.wait(0.5)
            assert voluntary() - slept < 20
