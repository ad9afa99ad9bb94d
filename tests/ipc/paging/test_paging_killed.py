"""A producer, the pager and a consumer are killed with -9 at random moments, while a queue pages.

Each message that was confirmed is consumed once, in the order of its producer, or comes again
flagged as redelivered: so it is with the last that a killed consumer had taken.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import shmbroker
from shmbroker import Broker, Empty, Queue
from shmbroker.ipc.base.errors import InUse
from shmbroker.ipc.paging.pager import Pager
from shmbroker.perf.machine.process import Process
from tests.support.until import until

KILLS = 50
SLOTS = 64
LIFE_MS_MAX = 12
PATIENCE = 60.0
NUMBER_BYTES = 8


def numbers(pipe: int) -> list[int]:
    told = b""
    while more := os.read(pipe, 1 << 16):
        told += more
    whole = range(0, len(told) - len(told) % NUMBER_BYTES, NUMBER_BYTES)
    return [int.from_bytes(told[at : at + NUMBER_BYTES], "little") for at in whole]


class Actor:
    """Lives until it is killed, and tells of numbers."""

    def __init__(self, work: Callable[[Callable[[int], None]], None], errors: Path) -> None:
        self.told, tell = os.pipe()
        self.is_dead = False

        def live() -> int:
            work(lambda number: os.write(tell, number.to_bytes(NUMBER_BYTES, "little")) and None)
            return 0

        self.process = Process(live, errors)
        os.close(tell)

    def kill(self) -> list[int]:
        self.is_dead = True
        status = self.process.kill()
        assert status in (-9, 0), self.process.errors.read_text()
        told = numbers(self.told)
        os.close(self.told)
        return told


class Scene:
    def __init__(self, vhost: str, folder: Path) -> None:
        self.url = f"shm://{vhost}"
        self.folder = folder
        self.first = 0
        """The number that the next producer begins with."""
        self.confirmed: list[tuple[int, int]] = []
        """From which to which number each of them had confirmed."""

    def produce(self, tell: Callable[[int], None]) -> None:
        random = Random(self.first)
        with shmbroker.connect(self.url, name="producer") as broker:
            queue, number = broker.queue("orders"), self.first
            while True:
                several = range(number, number + random.choice((1, 1, 3, 200)))
                bodies = [
                    each.to_bytes(8, "little") + bytes(random.randrange(600)) for each in several
                ]
                if len(bodies) > 1:
                    queue.publish_many(bodies)
                else:
                    queue.publish(bodies[0])
                number += len(bodies)
                tell(number)  # all below are confirmed

    def page(self, _tell: Callable[[int], None]) -> None:
        with shmbroker.connect(self.url, name="pager") as broker:
            pager = None
            while pager is None:
                broker.repair()
                with suppress(InUse):
                    pager = Pager(broker, self.folder, page_bytes=32 << 10)
            while pager.failure is None:
                os.read(self.never, 1)

    def consume(self, tell: Callable[[int], None]) -> None:
        with shmbroker.connect(self.url, name="consumer") as broker:
            queue = broker.queue("orders")
            while True:
                with suppress(Empty):
                    message = queue.get(timeout=1)
                    number = int.from_bytes(message.body[:8], "little")
                    tell(number << 1 | (message.deliveries > 0))
                    message.ack()


def drained(queue: Queue) -> Iterator[int]:
    while queue.statistics().depth:
        with suppress(Empty):
            message = queue.get(timeout=0.05)
            yield int.from_bytes(message.body[:8], "little") << 1 | (message.deliveries > 0)
            message.ack()


def check(told: list[int], confirmed: list[tuple[int, int]]) -> None:
    """What consumers have told, and what producers have confirmed: from each first to its end."""
    news = [each >> 1 for each in told if not each & 1]
    assert len(news) == len(set(news)), "none twice, unless it is flagged"
    assert news == sorted(news), "in order"
    all_told = {each >> 1 for each in told}
    for first, end in confirmed:
        lost = set(range(first, end)) - all_told
        assert not lost, f"of {first} to {end} {len(lost)} are lost, the first {min(lost)}"


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_lost_or_doubled_whoever_is_killed(
    broker: Broker, vhost: str, tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    scene = Scene(vhost, tmp_path / "pages")
    scene.never, _never = os.pipe()
    work = {"producer": scene.produce, "pager": scene.page, "consumer": scene.consume}
    with Pager(broker, scene.folder):
        queue = broker.declare_queue("orders", slots=SLOTS, when_full="page", max_deliveries=None)
    actors: dict[str, Actor] = {}
    told: list[int] = []

    def killed(name: str) -> None:
        said = actors.pop(name).kill()
        if name == "producer":
            scene.confirmed.append((scene.first, said[-1] if said else scene.first))
            # what it was publishing may be there as well: the next one's are others
            scene.first = (said[-1] if said else scene.first) + 1000
        elif name == "consumer":
            told.extend(said)

    try:
        for name in ("producer", "pager"):
            actors[name] = Actor(work[name], tmp_path / f"{name}.errors")
        until(lambda: queue.statistics().paged > SLOTS)
        for _ in range(KILLS):
            for name in work:
                if name not in actors:
                    actors[name] = Actor(work[name], tmp_path / f"{name}.errors")
            dies = random.choice(list(work))
            actors[dies].process.has_ended(random.uniform(0, LIFE_MS_MAX) / 1e3)
            killed(dies)
            if random.random() < 0.2:
                killed(random.choice(list(actors)))
        for name in list(actors):
            killed(name)
    finally:
        for actor in actors.values():
            actor.kill()
    broker.repair()
    with Pager(broker, scene.folder):
        told += drained(queue)
    check(told, scene.confirmed)
    assert sum(end - first for first, end in scene.confirmed) > KILLS
    assert queue.statistics().dropped == 0
