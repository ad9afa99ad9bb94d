"""Kill the live again and again under durable load: what was confirmed is consumed, once, in order.

    producer --> [ durable queue ] --> consumer
                        |
                  journal of the live   <-- kill -9; or SIGSTOP and the stall limit;
                        |                   or SIGTERM, and it hands over
                  three that wait       <-- the one that is announced takes over

The producer waits for each confirm, so what it measures is what a program sees of a kill.
"""

from __future__ import annotations

import os
import random
import select
import signal
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median

import shmbroker
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.config.config import load
from shmbroker.ipc.instance.creation import create
from shmbroker.ipc.instance.instance import Instance
from shmbroker.ipc.instance.lock.file_lock import FileLock
from shmbroker.ipc.instance.lock.record import EPOCH_DIGITS, FILE, Record
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.perf.machine.bare_file import sync_seconds
from shmbroker.perf.machine.process import Process

QUEUE = "load"
BACKLOG = "backlog"
BACKLOG_BODY = b"x" * 1024
BACKLOG_BATCH = 4096
INSTANCES = 4
PATIENCE_SECONDS = 60
CONFIRM = struct.Struct("qqq")
NUMBER = struct.Struct("q")
END = -1


def eventually(what: Callable[[], object]) -> None:
    ends_at = time.monotonic() + PATIENCE_SECONDS
    while not what():
        assert time.monotonic() < ends_at, "it did not happen"
        time.sleep(0.0005)


class Fleet:
    """Several instances on one store, each of which may be live."""

    def __init__(self, folder: Path, vhost: str, **settings: object) -> None:
        self.folder, self.vhost = folder, vhost
        self.store = folder / "store"
        self.folders = [folder / f"instance-{index}" for index in range(INSTANCES)]
        for index, each in enumerate(self.folders):
            given: dict[str, object] = {
                "instance.name": each.name,
                "instance.vhost": vhost,
                "instance.arena": "16MiB",
                "store.path": str(self.store),
                "store.segment": "4MiB",
                "ha.role": "live" if index == 0 else "backup",
                "ha.allow-failback": False,
            }
            create(each, {**given, **settings})
        self.lock = FileLock(self.store)
        self.running = [self._started(self.folders[0])]
        assert status.wait_for(self.folders[0], "live", PATIENCE_SECONDS), self.said()
        self.running += [self._started(each) for each in self.folders[1:]]

    def _started(self, folder: Path) -> Process:
        def live() -> int:
            return Instance(load(folder)).run()

        return Process(live, self.folder / f"{folder.name}.errors")

    def record(self) -> Record:
        record: list[Record] = []

        def read() -> bool:
            found = self.lock.record_if_whole()
            record[:] = [found] if found else []
            return bool(found)

        eventually(read)
        return record[0]

    def live(self) -> tuple[Process, int]:
        """Who is live, and its epoch, once somebody is ready to take over.

        On a busy machine it may be replaced at any moment, and ends then.
        """

        def is_served_and_waited_for() -> bool:
            self.revive()
            return self.lock.another_is_announced and self.lock.another_is_live

        eventually(is_served_and_waited_for)
        record = self.record()
        assert record.process is not None
        live = next(each for each in self.running if each.pid == record.process.pid)
        return live, record.epoch

    def revive(self) -> None:
        for index, each in enumerate(self.running):
            if each.has_ended():
                self.running[index] = self._started(self.folders[index])

    def close(self) -> None:
        for each in self.running:
            each.kill()
        self.lock.close()

    def said(self) -> str:
        return "".join(
            path.read_text() for path in sorted(self.folder.glob("instance-*/log/*.log"))
        )


@contextmanager
def fleet(folder: Path, vhost: str, **settings: object) -> Iterator[Fleet]:
    made = Fleet(folder, vhost, **settings)
    try:
        yield made
    finally:
        made.close()
        with suppress(shmbroker.Error):
            vhosts.delete(vhost, force=True)


def produce(vhost: str, confirms: Path, ends: int, store: Path) -> int:
    """One after the other, each confirmed, until told to end."""
    lock = os.open(store / FILE, os.O_RDONLY)
    with (
        shmbroker.connect(f"shm://{vhost}", name="producer") as broker,
        confirms.open("ab", buffering=0) as file,
    ):
        queue = broker.queue(QUEUE)
        number = 0
        while not select.select([ends], [], [], 0)[0]:
            queue.publish(NUMBER.pack(number))
            epoch = int(os.pread(lock, EPOCH_DIGITS, 0), 16)
            file.write(CONFIRM.pack(number, time.monotonic_ns(), epoch))
            number += 1
        queue.publish(NUMBER.pack(END))
    return 0


def consume(vhost: str, consumed: Path) -> int:
    with (
        shmbroker.connect(f"shm://{vhost}", name="consumer") as broker,
        consumed.open("ab", buffering=0) as file,
    ):
        queue = broker.queue(QUEUE)
        while True:
            with queue.get() as message:
                (number,) = NUMBER.unpack(message.body)
                if number == END:
                    return 0
                file.write(NUMBER.pack(number))


def power_of_two(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()


def declare(vhost: str, backlog: int) -> None:
    """And leave so many messages of 1 KiB in a queue that nobody takes from."""
    with shmbroker.connect(f"shm://{vhost}", name="test") as broker:
        broker.declare_queue(QUEUE, durable=True)
        if backlog:
            queue = broker.declare_queue(BACKLOG, durable=True, slots=power_of_two(2 * backlog))
            bodies = [BACKLOG_BODY] * BACKLOG_BATCH
            for done in range(0, backlog, BACKLOG_BATCH):
                queue.publish_many(bodies[: backlog - done])


def with_room_for(backlog: int) -> dict[str, object]:
    return {"instance.arena": f"{64 + (backlog * 5 // 4 >> 20)}MiB"} if backlog else {}


@dataclass(frozen=True)
class Outcome:
    confirmed: list[int]
    consumed: list[int]
    pauses: list[float]
    """Of each kill, from it to the next confirm of the new live, in seconds."""
    sync: float
    handovers: list[float] = field(default_factory=list)
    """Of each, the longest that the producer waited for a confirm, in seconds."""

    @property
    def lost(self) -> int:
        return len(set(self.confirmed) - set(self.consumed))

    @property
    def twice(self) -> int:
        return len(self.consumed) - len(set(self.consumed))

    @property
    def faults(self) -> list[str]:
        """What should not have happened to messages."""
        counted = {"lost": self.lost, "consumed twice": self.twice}
        found = [f"{count} messages {what}" for what, count in counted.items() if count]
        if not found and self.consumed != self.confirmed:
            found = ["messages consumed in another order than confirmed, or never confirmed"]
        return found

    def __str__(self) -> str:
        ordered = sorted(self.pauses)
        p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
        return (
            f"{len(self.pauses)} failovers, {len(self.confirmed)} confirmed, {self.lost} lost, "
            f"{self.twice} twice; from kill to confirm: "
            f"median {median(ordered) * 1e3:.1f} ms, 99 % {p99 * 1e3:.1f} ms, "
            f"max {ordered[-1] * 1e3:.1f} ms; one fdatasync {self.sync * 1e3:.2f} ms"
        )


def pauses(confirms: list[tuple[int, int, int]], kills: list[tuple[int, int]]) -> Iterator[float]:
    """From each kill of an epoch's live to the first confirm of a later one."""
    for at, epoch in kills:
        yield (next(time for _, time, later in confirms if later > epoch) - at) / 1e9


def longest_waits(
    confirms: list[tuple[int, int, int]], asked: list[tuple[int, int]]
) -> Iterator[float]:
    """From when each live was asked to hand over to the first confirm of a later one."""
    for at, epoch in asked:
        end = next(index for index, (_, _, later) in enumerate(confirms) if later > epoch)
        times = [time for _, time, _ in confirms[: end + 1]]
        waits = ((before, after) for before, after in pairwise(times) if after > at)
        yield max(after - before for before, after in waits) / 1e9


def await_confirm(confirms: Path) -> None:
    done = confirms.stat().st_size
    eventually(lambda: confirms.stat().st_size > done)


def asked_to_hand_over(live: Process) -> None:
    live.send(signal.SIGTERM)


def failover(
    folder: Path,
    vhost: str,
    kills: int,
    seed: int,
    hit: Callable[[Process], object] = Process.kill,
    *,
    hands_over: bool = False,
    at_rest: float = 0.0,
    backlog: int = 0,
    tell: Callable[[int], object] = lambda number: None,
    **settings: object,
) -> Outcome:
    """`backlog`: so many bytes, in messages of 1 KiB, lie in another queue all the time.

    `hands_over`: after each kill the live that has taken over is stopped, and hands over.
    """
    moments = random.Random(seed)
    confirms, consumed = folder / "confirms", folder / "consumed"
    confirms.touch()
    read_end, write_end = os.pipe()
    hits = [hit, asked_to_hand_over] if hands_over else [hit]
    hit_at: list[list[tuple[int, int]]] = [[] for _ in hits]
    given = with_room_for(backlog) | {"ha.failover-on-shutdown": hands_over} | settings
    with fleet(folder, vhost, **given) as instances:
        declare(vhost, backlog // len(BACKLOG_BODY))
        consumer = Process(lambda: consume(vhost, consumed), folder / "consumer.errors")
        producer = Process(
            lambda: produce(vhost, confirms, read_end, instances.store), folder / "producer.errors"
        )
        try:
            for number, (each, at) in enumerate([*zip(hits, hit_at, strict=True)] * kills):
                tell(number)
                await_confirm(confirms)
                select.select([], [], [], at_rest + moments.uniform(0, 0.03))
                live, epoch = instances.live()
                at.append((time.monotonic_ns(), epoch))
                each(live)
                eventually(lambda epoch=epoch: instances.record().epoch > epoch)  # type: ignore[misc]
                instances.revive()
            await_confirm(confirms)
            os.write(write_end, b".")
            assert producer.has_ended(PATIENCE_SECONDS), instances.said()
            assert consumer.has_ended(PATIENCE_SECONDS), instances.said()
            assert producer.status == 0, producer.errors.read_text()
            assert consumer.status == 0, consumer.errors.read_text()
        finally:
            producer.kill()
            consumer.kill()
            os.close(read_end)
            os.close(write_end)
    told = list(CONFIRM.iter_unpack(confirms.read_bytes()))
    return Outcome(
        [number for number, _, _ in told],
        [number for (number,) in NUMBER.iter_unpack(consumed.read_bytes())],
        list(pauses(told, hit_at[0])),
        sync_seconds(folder),
        list(longest_waits(told, hit_at[1])) if hands_over else [],
    )
