"""What is left of what was: a broker through many lives of queues, exchanges, patterns,
subscriptions and connections, by several programs one after the other, some of which are killed.

    programs  -->  vhost  <--  broker  -->  store
       |             |            |           |
    killed or     tables,     descriptors,  segments,
    ended         memory      mappings      a cold start

After each round all that might grow is measured; what is there is the same each time.
"""

from __future__ import annotations

import os
import resource
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

import shmbroker
from shmbroker import Broker
from shmbroker.core import layout as at
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.config.config import load
from shmbroker.ipc.instance.creation import create
from shmbroker.ipc.instance.instance import Instance
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.perf.machine.process import Process

PATIENCE_SECONDS = 600
SHM = Path("/dev/shm")
SLOTS = 16
KINDS = 20
STANDING = 4
"""Queues that are there all the time."""
LIVES_EACH = 10_000
"""Of a program."""
MANY = 150
"""Queues that one program uses at once: more than its list in the table of participants holds."""
DESCRIPTORS = 256
"""The broker may have no more."""


@dataclass(frozen=True, slots=True)
class Size:
    """All that might grow."""

    rows: tuple[int, ...]
    """Ever used at once of each table of the catalog: queues, exchanges, bindings, patterns."""
    participants: int
    listed: int
    """Queues in the broker's entry in the table of participants."""
    arena_bytes: int
    """In somebody's hand, or with messages."""
    shm_files: int
    shm_bytes: int
    descriptors: int
    mappings: int
    resident_bytes: int
    store_files: int
    store_bytes: int

    def counts(self) -> tuple[int, ...]:
        """Those that are counted in pieces."""
        pieces = self.participants, self.listed, self.shm_files, self.descriptors, self.mappings
        return *self.rows, *pieces, self.store_files

    def __str__(self) -> str:
        return ", ".join(f"{each.name} {getattr(self, each.name)}" for each in fields(self))


def _words(path: Path, offset: int, count: int) -> tuple[int, ...]:
    with path.open("rb") as file:
        file.seek(offset)
        return struct.unpack(f"{count}q", file.read(8 * count))


def _resident(pid: int) -> int:
    status_lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = (line for line in status_lines if line.startswith("RssAnon:"))
    return int(line.split()[1]) << 10


def size(vhost: str, broker: Process, store: Path) -> Size:
    segments = [path.stat() for path in SHM.glob(f"shmbroker.{vhost}.*")]
    files = [path.stat() for path in store.rglob("*") if path.is_file()]
    participants = SHM / f"shmbroker.{vhost}.participants"
    with shmbroker.connect(f"shm://{vhost}", observe=True) as observed:
        listed = {each.pid: each for each in observed.participants()}
        arena = sum(each.bytes for each in listed.values())
    first = _words(participants, at.PARTICIPANTS_AT + at.PARTICIPANT_BYTES, 7)
    return Size(
        rows=_words(SHM / f"shmbroker.{vhost}.catalog", at.CATALOG_HIGH_AT, 4),
        participants=_words(participants, at.PARTICIPANTS_HIGH_AT, 1)[0],
        listed=first[at.PARTICIPANT_QUEUES_AT // 8],
        arena_bytes=arena,
        shm_files=len(segments),
        shm_bytes=sum(each.st_blocks * 512 for each in segments),
        descriptors=len(list(Path(f"/proc/{broker.pid}/fd").iterdir())),
        mappings=len(Path(f"/proc/{broker.pid}/maps").read_text().splitlines()),
        resident_bytes=_resident(broker.pid),
        store_files=len(files),
        store_bytes=sum(each.st_blocks * 512 for each in files),
    )


# --- lives ----------------------------------------------------------------------------------------


def _queue(broker: Broker, number: int, **settings: object) -> None:
    queue = broker.declare_queue(f"life.{os.getpid()}.{number % 8}", slots=SLOTS, **settings)  # type: ignore[arg-type]
    queue.publish(b"used", timeout=PATIENCE_SECONDS)
    assert queue.receive(timeout=PATIENCE_SECONDS) == b"used"
    broker.delete_queue(queue.name, force=True)


def _exchange(broker: Broker, number: int) -> None:
    name = f"life.{os.getpid()}.{number % 8}"
    queue = broker.declare_queue(name, slots=SLOTS)
    exchange = broker.declare_exchange(name, "topic")
    broker.bind(name, name, "a.#")
    exchange.publish(b"routed", key="a.b")
    assert queue.receive(timeout=PATIENCE_SECONDS) == b"routed"
    broker.delete_exchange(name, force=True)
    broker.delete_queue(name, force=True)


def _pattern(broker: Broker, number: int) -> None:
    pattern = f"pattern.{os.getpid()}.#"
    broker.settings(pattern, max_messages=7)
    _queue(broker, number)
    broker.remove_settings(pattern)


def _once(broker: Broker, number: int) -> None:
    queue = broker.declare_queue(
        f"life.{os.getpid()}.{number % 8}", slots=SLOTS, durable=True, duplicate_ids=SLOTS
    )
    queue.publish(b"once", message_id=str(number).encode(), timeout=PATIENCE_SECONDS)
    queue.producer(f"producer {number}").publish(b"numbered", sequence=1, timeout=PATIENCE_SECONDS)
    broker.delete_queue(queue.name, force=True)


def _temporary(broker: Broker, number: int) -> None:
    queue = broker.temporary_queue(slots=SLOTS)
    queue.publish(b"%d" % number)
    assert queue.receive() == b"%d" % number
    broker.delete_queue(queue.name)


def _scheduled(broker: Broker, number: int) -> None:
    queue = broker.declare_queue(f"life.{os.getpid()}.{number % 8}", slots=SLOTS)
    queue.publish(b"later", deliver_after=3600)
    broker.delete_queue(queue.name, force=True)


def _subscription(broker: Broker, number: int) -> None:
    name = f"subscribed.{os.getpid()}.{number % 8}"
    broker.subscription(name, exchange="standing", durable=True, slots=SLOTS).close()
    broker.unsubscribe(name, force=True)


RARE: dict[int, Callable[[Broker, int], None]] = {
    0: lambda broker, number: _queue(broker, number, durable=True),
    1: lambda broker, number: _queue(broker, number, durable=True),
    2: _temporary,
    3: _exchange,
    4: _pattern,
    5: _once,
    6: _scheduled,
    7: _subscription,
}


def live(vhost: str, first: int, count: int) -> int:
    """So many lives of queues, of which three in twenty are durable."""
    with shmbroker.connect(f"shm://{vhost}", name="lives") as broker:
        for number in range(first, first + count):
            RARE.get(number % KINDS, _queue)(broker, number)
        return 0


def come_and_go(vhost: str, count: int) -> int:
    """So many connections, every other with something in its hand."""
    for number in range(count):
        with shmbroker.connect(f"shm://{vhost}", name="visitor") as broker:
            if number % 2:
                queue = broker.queue(f"standing {number % STANDING}")
                queue.publish(b"visited")
                queue.get(timeout=PATIENCE_SECONDS).ack()
    return 0


def die(vhost: str) -> int:
    """With a queue of its own, messages in hand, and without a word."""
    broker = shmbroker.connect(f"shm://{vhost}", name="victim")
    broker.temporary_queue(slots=SLOTS).publish(b"lost")
    queue = broker.queue("standing 0")
    queue.publish(b"back")
    broker.declare_exchange(f"left {os.getpid()}", "fanout")
    broker.delete_exchange(f"left {os.getpid()}")
    os.kill(os.getpid(), 9)
    return 1


# --- the broker -----------------------------------------------------------------------------------


@dataclass
class World:
    vhost: str
    folder: Path
    descriptors: int
    """The broker may have no more."""

    def __post_init__(self) -> None:
        create(
            self.folder / "broker",
            {
                "instance.name": "broker",
                "instance.vhost": self.vhost,
                "instance.arena": "64MiB",
                "store.path": str(self.store),
                "store.segment": "4MiB",
            },
        )

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def _run(self) -> int:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.descriptors, hard))
        return Instance(load(self.folder / "broker")).run()

    @contextmanager
    def broker(self) -> Iterator[Process]:
        """One that is live; it is killed."""
        process = Process(self._run, self.folder / "errors")
        try:
            went_live = status.wait_for(self.folder / "broker", "live", PATIENCE_SECONDS)
            assert went_live, (self.folder / "errors").read_text()
            yield process
        finally:
            process.kill()

    def of(self, work: Callable[[], int]) -> None:
        """A program of its own, to its end."""
        process = Process(work, self.folder / "errors")
        try:
            assert process.has_ended(PATIENCE_SECONDS)
        finally:
            process.kill()
        assert process.status in (0, -9), (self.folder / "errors").read_text()

    def stand(self) -> None:
        """What is there all the time."""
        with shmbroker.connect(f"shm://{self.vhost}") as broker:
            for number in range(STANDING):
                broker.declare_queue(f"standing {number}", slots=256)
            broker.declare_queue("durable", durable=True, slots=256).publish(b"kept")
            broker.declare_exchange("standing", "fanout")

    def round(self, first: int, lives: int, connects: int) -> None:
        """Programs that use queues, then some that die, then visitors."""
        for begin in range(first, first + lives, LIVES_EACH):
            count = min(LIVES_EACH, first + lives - begin)
            self.of(partial(live, self.vhost, begin, count))
        for _ in range(2):
            self.of(lambda: die(self.vhost))
        self.of(lambda: come_and_go(self.vhost, connects))
        with shmbroker.connect(f"shm://{self.vhost}") as broker:
            broker.repair()
            broker.queue("standing 0").purge()


@contextmanager
def one_with_many(vhost: str) -> Iterator[None]:
    """A program that uses many queues at once, and goes on."""
    with shmbroker.connect(f"shm://{vhost}", name="many") as broker:
        for number in range(MANY):
            queue = broker.declare_queue(f"many {number}", slots=SLOTS)
            queue.publish(b"used")
            queue.receive()
        yield


def grow(
    vhost: str,
    folder: Path,
    lives: int,
    connects: int,
    rounds: int,
    told: Callable[[str], object] = lambda _: None,
) -> list[Size]:
    """The sizes after each round, and after a cold start."""
    world, sizes = World(vhost, folder, DESCRIPTORS), list[Size]()
    began = time.monotonic()
    with world.broker() as broker:
        world.stand()
        with one_with_many(vhost):
            for number in range(rounds):
                world.round(number * lives // rounds, lives // rounds, connects // rounds)
                sizes.append(size(vhost, broker, world.store))
                done = time.monotonic() - began
                told(f"{done:6.0f} s, {(number + 1) * lives // rounds} lives: {sizes[-1]}")
    vhosts.delete(vhost, force=True)
    began = time.monotonic()
    with world.broker() as broker:
        told(f"cold start: {time.monotonic() - began:.3f} s")
        with shmbroker.connect(f"shm://{vhost}") as client:
            assert [queue.name for queue in client.queues()] == ["durable"]
            assert client.queue("durable").receive(timeout=PATIENCE_SECONDS) == b"kept"
        sizes.append(size(vhost, broker, world.store))
        told(f"after it: {sizes[-1]}")
    return sizes
