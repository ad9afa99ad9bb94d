"""A follower that is killed: its successor adopts the lasting gate, and misses nothing.

publisher and consumer ──> queue ──> follower ──> file of positions, before release
                                        └── killed, again and again
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from random import Random
from time import monotonic, sleep

import pytest

import shmbroker
from shmbroker import Broker, Queue, QueueFull
from shmbroker.ipc.follower.follower import Batch, Follower
from tests.support.host import PATIENCE

LIVES = 24
SLOTS = 256
BURST = 60
"""Messages that are published in each life."""
NAME = "far"
IN_A_BATCH, BEFORE_RELEASE, HALF_RELEASED, AT_ANY_TIME = range(4)


def in_child(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(1)
    return pid


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def deal_with(batch: Batch, file: int, dies: int) -> int:
    """Note each position: half of the way, which position is the next one."""
    half = 0
    for index, record in enumerate(batch):
        if index == batch.records // 2:
            half = record.position
            if dies == IN_A_BATCH:
                die()
        # of 8 bytes: a kill between two pages leaves half of what is written across them
        os.write(file, b"%7d\n" % record.position)
    return half


def follow(url: str, path: Path, dies: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    broker = shmbroker.connect(url)
    follower = Follower(broker, NAME, kind="replica", lasting=True)
    number = follower.add(broker.queue("orders"))
    while follower.wait(PATIENCE):
        batch = follower.read()
        if batch is None:
            continue
        half = deal_with(batch, file, dies)
        if dies == BEFORE_RELEASE:
            die()
        if dies == HALF_RELEASED:
            follower.release(number, half)
            die()
        follower.release_all()


def publish_some(queue: Queue) -> int:
    """Messages that are taken and acknowledged at once: how many there was room for."""
    for each in range(BURST):
        try:
            queue.publish(b"%d" % each, timeout=0)
        except QueueFull:
            return each
        with queue.get(timeout=PATIENCE):
            pass
    return BURST


def one_life(url: str, queue: Queue, path: Path, dies: int, moment: float) -> int:
    """How many messages were published in it."""
    pid = in_child(lambda: follow(url, path, dies))
    if dies == AT_ANY_TIME:
        sleep(moment)
    published = publish_some(queue)
    if dies == AT_ANY_TIME:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status)
    return published


def positions_in(path: Path) -> list[int]:
    return [int(line) for line in path.read_bytes().split()]


def check_no_gap(found: list[int], count: int) -> None:
    """All, in order; a successor may begin before the place at which the former one had ended."""
    next_one = 0
    for before, position in zip([-1, *found], found, strict=False):
        assert position == before + 1 or position <= next_one, "a message was missed"
        next_one = max(next_one, position + 1)
    assert next_one == count


def test_the_successor_of_one_that_was_killed_misses_nothing(
    broker: Broker, url: str, tmp_path: Path
) -> None:
    random, path, published = Random(LIVES), tmp_path / "positions", 0
    queue = broker.declare_queue("orders", slots=SLOTS)
    with Follower(broker, NAME, kind="replica", lasting=True) as first:
        first.add(queue)
    lives = cycle((IN_A_BATCH, BEFORE_RELEASE, HALF_RELEASED, AT_ANY_TIME, AT_ANY_TIME))
    for _, dies in zip(range(LIVES), lives, strict=False):
        published += one_life(url, queue, path, dies, random.random() / 20)
        (gate,) = queue.gates()
        assert (gate.name, gate.is_lasting) == (NAME, True)
    with (
        Follower(broker, NAME, kind="replica", lasting=True) as last,
        path.open("ab", buffering=0) as file,
    ):
        last.add(queue)
        while (batch := last.read()) is not None:
            deal_with(batch, file.fileno(), AT_ANY_TIME)
            last.release_all()
    assert published > SLOTS, "the killed ones released nothing"
    check_no_gap(positions_in(path), published)


@pytest.mark.parametrize("lasting", [False, True])
def test_a_fleeting_gate_goes_with_its_owner(broker: Broker, url: str, *, lasting: bool) -> None:
    queue = broker.declare_queue("orders", slots=8)

    def stand_still() -> None:
        other = shmbroker.connect(url)
        Follower(other, NAME, lasting=lasting).add(other.queue("orders"))
        die()

    os.waitpid(in_child(stand_still), 0)
    end = monotonic() + PATIENCE
    while monotonic() < end and any(gate.owner for gate in queue.gates()):
        broker.repair()
        sleep(0.001)
    assert [gate.owner for gate in queue.gates()] == ([None] if lasting else [])
    assert publish_some(queue) == (8 if lasting else BURST)
    assert [gate.holds_head for gate in queue.gates()] == ([True] if lasting else [])
