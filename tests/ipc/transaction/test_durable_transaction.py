"""Transactions on durable queues: in the journal as a whole or not at all, at every frame of it."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random

import pytest

import shmbroker
from shmbroker import Broker, Empty, Unconfirmed, aio
from shmbroker.core import layout
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.replay import Replay
from shmbroker.perf.machine.process import Process
from tests.support.host import PATIENCE, after_the_host_died, journaling
from tests.support.killed import KILLS
from tests.support.stopped import stop

QUEUES = ("in", "left", "right")
SLOTS = 16384
LARGE = 1 << 23
"""A segment that all of it goes into."""


def declare(connected: Broker, between: int) -> Broker:
    for name in QUEUES:
        connected.declare_queue(name, durable=True, slots=SLOTS, max_deliveries=None)
        for number in range(between):
            connected.declare_queue(f"{name}.{number}", durable=True, slots=2)
    return connected


@pytest.fixture
def broker(broker: Broker) -> Broker:
    return declare(broker, 0)


@pytest.fixture
def wide(vhost: str) -> Iterator[Broker]:
    """With so many other queues between two of them that it takes some time to see them all."""
    with shmbroker.connect(f"shm://{vhost}") as connected:
        yield declare(connected, 100)


def transfer(broker: Broker, confirm: str) -> None:
    """One message of `in` becomes one in `left` and one in `right`."""
    with broker.transaction() as tx:
        message = broker.queue("in").get(timeout=PATIENCE)
        body = message.body
        tx.publish(broker.queue("left"), body)
        tx.ack(message)
        tx.publish(broker.queue("right"), body)
        tx.commit(confirm=confirm, timeout=PATIENCE)  # type: ignore[arg-type]


class Model:
    """What the journal has said so far of each queue."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.bodies: dict[str, dict[int, bytes]] = {name: {} for name in QUEUES}
        self.retired: dict[str, set[int]] = {name: set() for name in QUEUES}

    def note(self, record: shmbroker.ipc.journal.replay.Record) -> None:  # type: ignore[name-defined]
        if record.kind == records.QUEUE:
            at = 72
            length = int.from_bytes(record.body[56:64], "little")
            self.names[record.queue] = record.body[at : at + length].decode()
        name = self.names.get(record.queue, "")
        if name not in QUEUES:
            return
        if record.kind == records.MESSAGE:
            shape = int.from_bytes(record.body[:8], "little")
            self.bodies[name][record.position] = record.body[
                len(record.body) - (shape >> layout.SHAPE_BODY_SHIFT) :
            ]
        elif record.kind in (records.RETIRED, records.QUEUE):
            self.retired[name].update(range(record.position))
        if record.kind == records.RETIRED:
            bits = int.from_bytes(record.body, "little")
            self.retired[name].update(
                record.position + bit for bit in range(8 * len(record.body)) if bits >> bit & 1
            )

    def consumed(self, name: str) -> set[bytes]:
        return {body for at, body in self.bodies[name].items() if at in self.retired[name]}


def check_every_frame(folder: Path) -> int:
    """Recover from each frame: how many transfers there were, all told."""
    model = Model()
    with Replay(folder) as replay:
        for record in replay:
            model.note(record)
            if record.last:
                left, right = (
                    {body for body in model.bodies[name].values() if 0 < len(body) < 10}
                    for name in ("left", "right")
                )
                assert left == right
                assert left == model.consumed("in")
    return len(model.consumed("in"))


def fill(broker: Broker, count: int) -> None:
    broker.queue("in").publish_many([b"%d" % number for number in range(count)], confirm="shm")


def test_a_commit_is_done_when_it_is_on_disk(broker: Broker, vhost: str, tmp_path: Path) -> None:
    tx = broker.transaction()
    for name in QUEUES:
        tx.publish(broker.queue(name), b"x")
    with pytest.raises(Unconfirmed, match="is a broker running") as told:
        tx.commit(timeout=0.01)
    assert [broker.queue(name).published for name in QUEUES] == [1, 1, 1]
    with journaling(vhost, tmp_path):
        told.value.confirm(timeout=PATIENCE)
        tx.confirm(timeout=0)
        transfer(broker, "disk")
        assert [broker.queue(name).confirmed for name in QUEUES] == [1, 2, 2]
    with after_the_host_died(vhost, tmp_path) as after:
        assert [len(list(after.queue(name).browse())) for name in QUEUES] == [0, 2, 2]


def test_one_that_only_acknowledges(broker: Broker, vhost: str, tmp_path: Path) -> None:
    with journaling(vhost, tmp_path):
        fill(broker, 2)
        with broker.transaction(timeout=PATIENCE) as tx:
            tx.ack(broker.queue("in").get_many(2, timeout=PATIENCE)[1])  # not at the head
    with after_the_host_died(vhost, tmp_path) as after:
        assert [each.body for each in after.queue("in").browse()] == [b"0"]


def test_one_on_queues_that_are_not_durable_waits_for_nobody(broker: Broker) -> None:
    queue = broker.declare_queue("passing")
    with broker.transaction() as tx:
        tx.publish(queue, b"x")
    tx.confirm(timeout=0)
    assert queue.receive(timeout=0) == b"x"


def test_with_asyncio(broker: Broker, vhost: str, tmp_path: Path) -> None:
    async def session() -> None:
        async with await aio.connect(f"shm://{vhost}") as connected:
            queue = await connected.queue("in")
            tx = connected.transaction()
            tx.publish(queue, b"x")
            with pytest.raises(Unconfirmed):
                await tx.commit(timeout=0.01)
            with journaling(vhost, tmp_path):
                await tx.confirm(timeout=PATIENCE)
                assert queue.confirmed == 1

    asyncio.run(session())


@pytest.mark.parametrize("segment", [1 << 20, LARGE])
def test_at_every_frame_all_of_each_or_nothing(
    wide: Broker, vhost: str, tmp_path: Path, segment: int
) -> None:
    """Several commit at once, faster than the disk.

    With small segments one message is in hand, so that none of them goes: what is retired is all
    above the head then.
    """
    count = 8000

    def work(vhost: str) -> int:
        with shmbroker.connect(f"shm://{vhost}") as mine:
            try:
                while True:
                    transfer(mine, "shm")
            except Empty:
                return 0

    fill(wide, count + 1)
    with journaling(vhost, tmp_path, segment=segment), ExitStack() as stack:
        held = wide.queue("in").get(timeout=PATIENCE)
        if segment == LARGE:
            held.give_back()
            count += 1
        for number in range(3):
            process = Process(partial(work, vhost), tmp_path / f"errors{number}")
            stack.callback(process.kill)
        seen = set()
        for message in itertools.islice(wide.queue("right").consume(timeout=PATIENCE), count):
            seen.add(message.body)
    assert len(seen) == count
    assert check_every_frame(tmp_path) == count


def test_a_frame_is_as_large_as_it_takes(broker: Broker, vhost: str, tmp_path: Path) -> None:
    """Each part of it lies behind more than one turn would write of its queue."""
    fill(broker, 2)  # one stays, so that the segment that they are in is needed
    with journaling(vhost, tmp_path, 1):
        broker.queue("in").confirm(timeout=PATIENCE)
    for name in ("left", "right"):
        others = broker.queue(name)
        others.publish_many([b""] * 5000, confirm="shm")
        for _ in range(3):
            others.publish(bytes(1 << 20), confirm="shm")
        others.publish_many([b""] * 5000, confirm="shm")
        if name == "left":
            transfer(broker, "shm")
    with journaling(vhost, tmp_path, 2):
        for name in QUEUES:
            broker.queue(name).confirm(timeout=PATIENCE)
    assert check_every_frame(tmp_path) == 1


def test_one_whose_process_is_stopped_half_way_holds_up_nobody_for_long(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    begun, say = os.pipe()

    def work() -> int:
        with shmbroker.connect(f"shm://{vhost}") as mine:
            os.write(say, b"!")
            while True:
                transfer(mine, "shm")

    fill(broker, 4000)
    with journaling(vhost, tmp_path):
        process = Process(work, tmp_path / "errors")
        try:
            os.read(begun, 1)
            for _ in range(20):
                stop(process.pid)
                broker.queue("left").publish(b"other", timeout=PATIENCE)
                os.kill(process.pid, signal.SIGCONT)
        finally:
            process.kill()


# --- kill -9 ------------------------------------------------------------------------------------


def test_all_or_nothing_whenever_who_commits_is_killed(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    """And the host with it, each tenth time: what was half way then is not there at all."""
    random, journal, epoch = Random(11), tmp_path / "journal", 1
    fill(broker, SLOTS)
    broker.close()

    def work(say: int) -> int:
        with shmbroker.connect(f"shm://{vhost}") as mine:
            transfer(mine, "shm")
            os.write(say, b"!")
            while True:
                transfer(mine, "shm")

    for kill in range(KILLS):
        died = kill and kill % 10 == 0
        context = after_the_host_died if died else journaling
        with context(vhost, journal, epoch, LARGE), shmbroker.connect(f"shm://{vhost}") as mine:
            epoch += 1
            begun, say = os.pipe()
            process = Process(partial(work, say), tmp_path / "errors")
            os.close(say)
            try:
                assert os.read(begun, 1), process.errors.read_text()
                assert not process.has_ended(random.uniform(0, 0.01)), process.errors.read_text()
            finally:
                process.kill()
                os.close(begun)
            mine.repair()
    assert check_every_frame(journal) > KILLS
    with after_the_host_died(vhost, journal, epoch, LARGE) as after:
        there = {name: {each.body for each in after.queue(name).browse()} for name in QUEUES}
    assert there["left"] == there["right"]
    assert there["left"] | there["in"] == {b"%d" % number for number in range(SLOTS)}
    assert not there["left"] & there["in"]
