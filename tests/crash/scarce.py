"""Brokers that have too little of something: of a disk that fills and empties, or of descriptors.

    producer --> [ durable queue ] --> consumer        and a queue that nobody takes from
                        |
                  journal of the live    <-- kill -9, also of all; filled, emptied

Who publishes waits for each confirm, for as long as there is no room.  In the end what was
confirmed was consumed, once and in order, and what nobody has taken is there after a cold start.
No broker ends by itself.
"""

from __future__ import annotations

import os
import resource
import select
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import shmbroker
from shmbroker import NotFound
from shmbroker.ipc.instance.config.config import load
from shmbroker.ipc.instance.instance import Instance
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.perf.machine.process import Process
from shmbroker.perf.scenarios.failover.trial import PATIENCE_SECONDS, Fleet
from tests.support.small_disk import empty, fill, small_disk

QUEUE, KEPT = "load", "kept"
BODY = struct.Struct("q4000x")
NUMBER = struct.Struct("q")
END = -1
KEPT_COUNT = 200
"""So many messages at first go to the queue that nobody takes from."""
DISK_BYTES = 24 << 20
DESCRIPTORS_MAX = 64
QUEUES = 300
"""Durable, and more than descriptors."""
STEP_SECONDS = 0.2


class Instances(Fleet):
    """Whose processes may have only so many descriptors."""

    descriptors_max = 0

    def _started(self, folder: Path) -> Process:
        most = self.descriptors_max

        def live() -> int:
            if most:  # of its own: the process of the tests has some, too, and it inherits them
                limit = most + sum(1 for _ in Path("/proc/self/fd").iterdir())
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            return Instance(load(folder)).run()

        return Process(live, self.folder / f"{folder.name}.errors")


class FewDescriptors(Instances):
    descriptors_max = DESCRIPTORS_MAX


@dataclass
class Outcome:
    steps: dict[str, int]
    confirmed: list[int]
    consumed: list[int]
    kept: list[int]
    left: list[int]
    """Of those that were to be kept, what was there after the cold start."""

    @property
    def faults(self) -> list[str]:
        found = []
        if self.consumed != self.confirmed:
            lost = len(set(self.confirmed) - set(self.consumed))
            twice = len(self.consumed) - len(set(self.consumed))
            found.append(f"{lost} messages lost, {twice} consumed twice, or in another order")
        if self.left != self.kept:
            lost = len(set(self.kept) - set(self.left))
            found.append(f"{lost} of {len(self.kept)} messages did not survive the cold start")
        return found

    def __str__(self) -> str:
        done = ", ".join(f"{count} times {name}" for name, count in sorted(self.steps.items()))
        said = "; ".join(self.faults) or "none lost"
        return f"{done}: {len(self.confirmed) + len(self.kept):,} messages confirmed, {said}"


def produce(vhost: str, confirms: Path, ends: int) -> int:
    """One after the other, each confirmed, until told to end."""
    with (
        shmbroker.connect(f"shm://{vhost}", name="producer") as broker,
        confirms.open("ab", buffering=0) as file,
    ):
        kept, queue = broker.queue(KEPT), broker.queue(QUEUE)
        number = 0
        while not select.select([ends], [], [], 0)[0] or number < KEPT_COUNT:
            (kept if number < KEPT_COUNT else queue).publish(BODY.pack(number))
            file.write(NUMBER.pack(number))
            number += 1
        queue.publish(BODY.pack(END))
    return 0


def consume(vhost: str, consumed: Path) -> int:
    with (
        shmbroker.connect(f"shm://{vhost}", name="consumer") as broker,
        consumed.open("ab", buffering=0) as file,
    ):
        queue = broker.queue(QUEUE)
        while True:
            with queue.get() as message:
                (number,) = BODY.unpack(message.body)
                if number == END:
                    return 0
                file.write(NUMBER.pack(number))


def numbers(path: Path) -> list[int]:
    content = path.read_bytes()
    return [number for (number,) in NUMBER.iter_unpack(content)]


@contextmanager
def programs(folder: Path, vhost: str) -> Iterator[tuple[Process, Process, int]]:
    """The producer, the consumer, and where to tell the former to end."""
    read_end, write_end = os.pipe()
    consumer = Process(lambda: consume(vhost, folder / "consumed"), folder / "consumer.errors")
    producer = Process(
        lambda: produce(vhost, folder / "confirms", read_end), folder / "producer.errors"
    )
    try:
        yield producer, consumer, write_end
    finally:
        producer.kill()
        consumer.kill()
        os.close(read_end)
        os.close(write_end)


class Round:
    """What is done to the instances, by chance."""

    def __init__(self, folder: Path, instances: Fleet, seed: int) -> None:
        self.folder, self.instances, self.random = folder, instances, Random(seed)
        self.steps: dict[str, int] = {}

    def wait(self, what: Callable[[], object]) -> None:
        ends_at = time.monotonic() + PATIENCE_SECONDS
        while not what():
            assert time.monotonic() < ends_at, f"it did not happen: {self.said()}"
            time.sleep(0.01)

    def rest(self) -> None:
        select.select([], [], [], self.random.random() * STEP_SECONDS)

    def live(self) -> Process | None:
        process = self.instances.record().process
        return next(
            (each for each in self.instances.running if process and each.pid == process.pid), None
        )

    def kill_live(self) -> None:
        self.wait(lambda: self.live() and self.instances.lock.another_is_announced)
        live = self.live()
        assert live is not None
        epoch = self.instances.record().epoch
        live.kill()
        self.wait(lambda: self.instances.record().epoch > epoch)
        self.instances.revive()

    def kill_all(self) -> None:
        epoch = self.instances.record().epoch
        for each in self.instances.running:
            each.kill()
        self.instances.revive()
        self.wait(lambda: self.instances.record().epoch > epoch)

    def fill(self) -> None:
        fill(self.instances.store)

    def empty(self) -> None:
        empty(self.instances.store)

    def play(self, steps: int, names: list[str]) -> None:
        for _ in range(steps):
            name = self.random.choice(names)
            getattr(self, name)()
            self.steps[name] = self.steps.get(name, 0) + 1
            self.rest()
            for each in self.instances.running:
                assert not each.has_ended(), f"a broker has ended: {self.said()}"

    def said(self) -> str:
        errors = self.folder.glob("*.errors")
        return self.instances.said() + "".join(path.read_text() for path in errors)


def end(round_: Round, producer: Process, consumer: Process, write_end: int) -> None:
    """There is room again: what waits goes on by itself."""
    os.write(write_end, b".")
    for each in (producer, consumer):
        assert each.has_ended(PATIENCE_SECONDS), f"it does not go on: {round_.said()}"
        assert each.status == 0, each.errors.read_text()


def after_a_cold_start(round_: Round, vhost: str) -> list[int]:
    """What the journal has of the queue that nobody took from."""
    instances = round_.instances
    for each in instances.running:
        each.kill()
    vhosts.delete(vhost, force=True)
    epoch = instances.record().epoch
    instances.revive()

    def is_there() -> bool:
        with suppress(NotFound):
            shmbroker.connect(f"shm://{vhost}", observe=True).close()
            return instances.record().epoch > epoch
        return False

    round_.wait(is_there)
    with shmbroker.connect(f"shm://{vhost}", observe=True) as broker:
        return [BODY.unpack(each.body)[0] for each in broker.queue(KEPT).browse()]


def play(
    folder: Path, vhost: str, instances: Fleet, steps: int, seed: int, names: list[str], queues: int
) -> Outcome:
    try:
        with shmbroker.connect(f"shm://{vhost}", name="test") as broker:
            broker.declare_queue(QUEUE, durable=True)
            broker.declare_queue(KEPT, durable=True)
            for number in range(queues):
                broker.declare_queue(f"beside-{number}", durable=True, slots=2)
        round_ = Round(folder, instances, seed)
        with programs(folder, vhost) as (producer, consumer, write_end):
            confirms = folder / "confirms"
            round_.wait(lambda: confirms.exists() and confirms.stat().st_size > 0)
            round_.play(steps, names)
            empty(instances.store)
            end(round_, producer, consumer, write_end)
        left = after_a_cold_start(round_, vhost)
    finally:
        instances.close()
    confirmed = numbers(folder / "confirms")
    return Outcome(
        round_.steps,
        confirmed[KEPT_COUNT:],
        numbers(folder / "consumed"),
        confirmed[:KEPT_COUNT],
        left,
    )


def on_a_small_disk(folder: Path, vhost: str, steps: int, seed: int) -> Outcome:
    """The disk of the store fills and empties while the live, or all, are killed."""
    names = ["fill"] * 3 + ["empty"] * 3 + ["kill_live"] * 2 + ["kill_all"]
    with small_disk(folder / "store", DISK_BYTES):
        settings: dict[str, object] = {"store.segment": "1MiB", "instance.arena": "64MiB"}
        instances = Instances(folder, vhost, **settings)
        return play(folder, vhost, instances, steps, seed, names, 0)


def with_few_descriptors(folder: Path, vhost: str, steps: int, seed: int) -> Outcome:
    """There are more durable queues than each broker may have descriptors."""
    settings: dict[str, object] = {"store.segment": "1MiB", "instance.arena": "64MiB"}
    instances = FewDescriptors(folder, vhost, **settings)
    names = ["kill_live"] * 2 + ["kill_all"]
    return play(folder, vhost, instances, steps, seed, names, QUEUES)
