"""A broker is killed with -9 at random moments while a durable queue pages, and so is its host.

Each message that was confirmed is consumed once, in the order of its producer, or comes again
flagged as redelivered.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

import shmbroker
from shmbroker import Broker, Empty, Queue
from shmbroker.ipc.base.errors import Error, InUse
from shmbroker.ipc.broker.journaler import Journaler, restore
from shmbroker.ipc.paging.pager import Pager
from shmbroker.ipc.vhost import vhost as vhosts
from tests.ipc.paging.test_paging_killed import NUMBER_BYTES, Actor, Scene, check, drained

KILLS = 50
DEATHS = 30
SLOTS = 64
LIFE_MS_MAX = 60
SEGMENT = 256 << 10
PAGE_BYTES = 32 << 10
PATIENCE = 60.0


@contextmanager
def working(vhost: str, store: Path, epoch: int, *, restores: bool = False) -> Iterator[Broker]:
    """A broker at work, of one that was killed or on a host that is started anew."""
    with (
        shmbroker.connect(f"shm://{vhost}", name="broker") as broker,
        Journaler(store / "journal", segment_bytes=SEGMENT) as journaler,
    ):
        restored = restore(broker, store / "journal") if restores else None
        while True:
            broker.repair()
            with suppress(InUse):
                journaler.start(broker, epoch, restored)
                break
        with Pager(broker, store / "pages", page_bytes=PAGE_BYTES, epoch=epoch) as pager:
            yield broker
            assert (pager.failure, journaler.failure) == (None, None)


class DurableScene(Scene):
    def __init__(self, vhost: str, store: Path) -> None:
        super().__init__(vhost, store / "pages")
        self.vhost = vhost
        self.store = store
        self.epoch = 0
        self.restores = False
        (store / "journal").mkdir(parents=True)

    def work(self, tell: Callable[[int], None]) -> None:
        with working(self.vhost, self.store, self.epoch, restores=self.restores):
            tell(0)
            threading.Event().wait()

    def broker(self, errors: Path, *, restores: bool = False) -> Actor:
        self.epoch += 1
        self.restores = restores
        return Actor(self.work, errors)

    def ended(self, actor: Actor, before: bytes = b"") -> None:
        """What a producer had confirmed; what it was publishing may be there as well.  `before`:
        what was read already of what it has told."""
        end = max(self.first, int.from_bytes(before, "little"), *actor.kill())
        self.confirmed.append((self.first, end))
        self.first = end + 1000


@pytest.fixture
def scene(vhost: str, tmp_path: Path) -> DurableScene:
    made = DurableScene(vhost, tmp_path / "store")
    with working(vhost, made.store, 1) as broker:
        broker.declare_queue(
            "orders", slots=SLOTS, durable=True, when_full="page", max_deliveries=None
        )
    made.epoch = 1
    return made


def rest(queue: Queue) -> list[int]:
    """What is left, once nothing comes any more."""
    told = list(drained(queue))
    with suppress(Empty):
        while True:
            message = queue.get(timeout=0.2)
            told.append(int.from_bytes(message.body[:8], "little") << 1 | (message.deliveries > 0))
            message.ack()
    return told


def test_a_broker_is_killed_fifty_times(scene: DurableScene, vhost: str, tmp_path: Path) -> None:
    random = Random(1)
    told: list[int] = []
    producer = Actor(scene.produce, tmp_path / "producer.errors")
    consumer = None
    paged = 0
    with shmbroker.connect(f"shm://{vhost}") as watching:
        queue = watching.queue("orders")
        broker = scene.broker(tmp_path / "broker.errors")
        try:
            for _ in range(KILLS):
                os.read(broker.told, 8)  # it works
                broker.process.has_ended(random.uniform(0, LIFE_MS_MAX) / 1e3)
                paged = max(paged, queue.statistics().paged)
                broker.kill()
                broker = scene.broker(tmp_path / "broker.errors")
                if consumer is not None and random.random() < 0.2:
                    told += consumer.kill()
                    consumer = None
                elif consumer is None and random.random() < 0.6:
                    consumer = Actor(scene.consume, tmp_path / "consumer.errors")
                if random.random() < 0.1:
                    scene.ended(producer)
                    producer = Actor(scene.produce, tmp_path / "producer.errors")
            scene.ended(producer)
            told += consumer.kill() if consumer else []
        finally:
            for actor in (broker, producer, consumer):
                if actor and not actor.is_dead:
                    actor.kill()
    with working(vhost, scene.store, scene.epoch + 1) as last:
        last.repair()
        queue = last.queue("orders")
        told += rest(queue)
        assert queue.statistics().dropped == 0
        said = [each.text for each in last.errors() if "missing" in each.text]
    assert not said
    assert paged > SLOTS, "it has paged"
    assert sum(end - first for first, end in scene.confirmed) > KILLS
    check(told, scene.confirmed)


def test_a_host_dies_thirty_times(scene: DurableScene, vhost: str, tmp_path: Path) -> None:
    """Everything is killed, memory is gone, the store is there."""
    random = Random(2)
    told: list[int] = []
    paged = 0
    for round_ in range(DEATHS):
        broker = scene.broker(tmp_path / "broker.errors", restores=round_ > 0)
        actors = {"broker": broker}
        try:
            assert os.read(broker.told, 8), broker.process.errors.read_text()
            actors["producer"] = Actor(scene.produce, tmp_path / "producer.errors")
            if round_ % 3:
                actors["consumer"] = Actor(scene.consume, tmp_path / "consumer.errors")
            begun = b""
            if round_ % 3 != 1:  # else it may die while they begin
                begun = os.read(actors["producer"].told, NUMBER_BYTES)
                assert begun, actors["producer"].process.errors.read_text()
            broker.process.has_ended(random.uniform(20, 120) / 1e3)
            with suppress(Error), shmbroker.connect(f"shm://{vhost}") as watching:
                paged = max(paged, watching.queue("orders").statistics().paged)
            broker.kill()
            if "consumer" in actors:
                told += actors["consumer"].kill()
            scene.ended(actors["producer"], begun)
        finally:
            for actor in actors.values():
                if not actor.is_dead:
                    actor.kill()
        vhosts.delete(vhost, force=True)
        vhosts.create(vhost, arena_bytes=64 << 20)
    with working(vhost, scene.store, scene.epoch + 1, restores=True) as last:
        queue = last.queue("orders")
        told += rest(queue)
        assert queue.statistics().dropped == 0
        said = [each.text for each in last.errors()]
    assert not said
    assert paged > SLOTS, "it has paged"
    assert sum(end - first for first, end in scene.confirmed) > DEATHS
    check(told, scene.confirmed)
