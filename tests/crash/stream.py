"""A stream from one vhost to another, and kill -9 of whoever takes part, on either side.

    publisher ──► source ──► mover ──► target, or a topic exchange to several ──► consumers
                    │  (follower → buffer → sink: perf/micro/stream.py)
                    └──► taker          vhost A | vhost B

The taker takes what the publisher has published, the mover follows it behind its gate.  Each takes
note of what it got, before it acknowledges: so what is at the far side can be compared with what
was at the near side, by content and order.  Whoever is killed is replaced at once by another, who
goes on where the rings say.  In the end all are killed, and the rest is moved and taken by us.
"""

from __future__ import annotations

import os
import select
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import IO, Any

import shmbroker
from shmbroker import Broker, Empty, Queue
from shmbroker.ipc.follower.follower import Follower
from shmbroker.ipc.paging.pager import Pager
from shmbroker.perf.machine.process import Process
from shmbroker.perf.micro.stream import Mover
from tests.conftest import vhost_for_a_while

SOURCE, TARGET, EXCHANGE = "source", "target", "prices"
SLOTS = 256
KEYS = 20
SHOWN = 20
REPAIRED = 0.5
"""After so many of the kills we repair at once, as `shmbroker run` does; after the others those who
wait repair, or those who come."""
LIFE_SECONDS = 0.02
EARLY = 0.2
"""So many are killed without a look whether anybody has begun."""
PATIENCE_SECONDS = 60.0
IDENTITY_SHIFT = 32
NOTE = struct.Struct("<qqq8x")
"""None of 32 bytes crosses a page: a kill between two pages leaves half of what is written."""
BODY = struct.Struct("<q")
TARGETS: dict[str, dict[str, Any]] = {
    "plain": {"slots": SLOTS},
    "page": {"slots": 64, "when_full": "page"},
    "last-value": {"slots": SLOTS, "last_value": True},
    "topic": {"slots": SLOTS},
}
PATTERNS = {"all": "#", "some": "*.k1", "others": "eu.*"}
"""Of the queues behind the exchange.  Keys are eu.kN and us.kN."""


def key_of(number: int) -> str:
    return f"{'eu' if number % 3 else 'us'}.k{number % KEYS}"


WANTED: dict[str, Callable[[str], bool]] = {
    "all": lambda _: True,
    "some": lambda key: key.endswith(".k1"),
    "others": lambda key: key.startswith("eu."),
}


@dataclass(frozen=True, slots=True)
class Note:
    position: int
    number: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class Part:
    """Where everybody is and takes notes."""

    near: str
    far: str
    folder: Path
    kind: str

    def notes(self, queue: str) -> Path:
        return self.folder / f"{queue}.notes"

    def noted(self, queue: str) -> list[Note]:
        path = self.notes(queue)
        content = path.read_bytes() if path.exists() else b""
        return [Note(*each) for each in NOTE.iter_unpack(content)]

    @property
    def targets(self) -> list[str]:
        return list(PATTERNS) if self.kind == "topic" else [TARGET]


# --- who takes part -------------------------------------------------------------------------------


def publish(part: Part, identity: int, begun: int) -> int:
    with shmbroker.connect(f"shm://{part.near}", name="publisher") as broker:
        queue = broker.queue(SOURCE)
        number = identity << IDENTITY_SHIFT
        os.write(begun, b"!")
        while True:
            queue.publish(BODY.pack(number), key=key_of(number), timeout=PATIENCE_SECONDS)
            number += 1


def take(queue: Queue, file: IO[bytes], timeout: float) -> None:
    """Take note of one message, then acknowledge it."""
    with queue.get(timeout=timeout) as message:
        (number,) = BODY.unpack(message.body)
        file.write(NOTE.pack(message.position, number, message.deliveries))


def take_all(queue: Queue, path: Path) -> None:
    """All that is there by now."""
    with path.open("ab", buffering=0) as file, suppress(Empty):
        while True:
            take(queue, file, 0)


def consume(part: Part, vhost: str, name: str, begun: int) -> int:
    with (
        shmbroker.connect(f"shm://{vhost}", name=f"consumer of {name}") as broker,
        part.notes(name).open("ab", buffering=0) as file,
    ):
        queue = broker.queue(name)
        os.write(begun, b"!")
        while True:
            with suppress(Empty):
                take(queue, file, PATIENCE_SECONDS)


@contextmanager
def mover_of(part: Part) -> Iterator[Mover]:
    with (
        shmbroker.connect(f"shm://{part.near}", name="mover") as near,
        shmbroker.connect(f"shm://{part.far}", name="mover") as far,
    ):
        target = far.exchange(EXCHANGE) if part.kind == "topic" else far.queue(TARGET)
        with Mover(near, far, near.queue(SOURCE), target) as mover:
            yield mover


def move(part: Part, begun: int) -> int:
    with mover_of(part) as mover:
        os.write(begun, b"!")
        while True:
            if mover.move() == 0:
                mover.wait(PATIENCE_SECONDS)


# --- the verdict ----------------------------------------------------------------------------------


def in_order(notes: list[Note]) -> tuple[list[int], list[str]]:
    """What was in a queue, by position, and what contradicts that each was there once."""
    at: dict[int, int] = {}
    found = []
    for note in notes:
        if note.position in at and not note.deliveries:
            found.append(f"position {note.position} was delivered anew, and not flagged")
        if at.setdefault(note.position, note.number) != note.number:
            found.append(f"position {note.position} had {at[note.position]} and {note.number}")
    if len(set(at.values())) != len(at):
        found.append(f"{len(at) - len(set(at.values()))} messages are there twice")
    return [at[position] for position in sorted(at)], found


def last_values(notes: list[Note], published: list[int]) -> Iterator[str]:
    """Of each key the last value came, and none after a newer one.

    What a consumer held that was killed may, and is flagged."""
    place = {number: index for index, number in enumerate(published)}
    latest: dict[str, int] = {}
    for note in notes:
        key, index = key_of(note.number), place.get(note.number, -1)
        before = latest.get(key, -1)
        if index < 0:
            yield f"{note.number} was never published"
        if index <= before and not note.deliveries:
            yield f"{note.number} came after a newer value of {key}, or twice, and is not flagged"
        latest[key] = max(index, before)
    wanted = {key_of(number): index for index, number in enumerate(published)}
    if latest != wanted:
        yield f"the last values of {len(set(latest.items()) ^ set(wanted.items()))} keys are others"


def compare(name: str, notes: list[Note], wanted: list[int]) -> Iterator[str]:
    got, found = in_order(notes)
    yield from (f"{name}: {each}" for each in found)
    if got != wanted:
        missing, more = set(wanted) - set(got), set(got) - set(wanted)
        yield (
            f"{name}: {len(missing)} of {len(wanted)} messages are missing, {len(more)} were never"
            " published, or the order is another"
        )


def faults(part: Part) -> Iterator[str]:
    published, found = in_order(part.noted(SOURCE))
    yield from (f"{SOURCE}: {each}" for each in found)
    for name in part.targets:
        notes = part.noted(name)
        if part.kind == "last-value":
            yield from last_values(notes, published)
        elif part.kind == "topic":
            wanted = [number for number in published if WANTED[name](key_of(number))]
            yield from compare(name, notes, wanted)
        else:
            yield from compare(name, notes, published)


# --- a round --------------------------------------------------------------------------------------


@dataclass
class Outcome:
    kind: str
    seed: int
    kills: dict[str, int] = field(default_factory=dict)
    messages: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        killed = ", ".join(f"{count} of a {name}" for name, count in sorted(self.kills.items()))
        said = "\n".join(f"  {each}" for each in self.faults[:SHOWN])
        return (
            f"{self.kind}, seed {self.seed}: {sum(self.kills.values())} kills ({killed}),"
            f" {self.messages:,} messages, {said or 'each there once, in order'}"
        )


class Actor:
    """One who takes part, and says when it has begun."""

    def __init__(self, play: Callable[[int], int], errors: Path) -> None:
        self._has_begun = False
        self._begun, say = os.pipe()
        self._process = Process(partial(play, say), errors)
        os.close(say)

    def begins(self) -> None:
        """Wait until it has."""
        if not self._has_begun:
            select.select([self._begun], [], [], PATIENCE_SECONDS)
            os.set_blocking(self._begun, False)
            self._has_begun = os.read(self._begun, 1) == b"!"
        assert self._has_begun, self._process.errors.read_text()

    def lives(self, seconds: float) -> None:
        assert not self._process.has_ended(seconds), self._process.errors.read_text()

    def kill(self) -> None:
        self._process.kill()
        os.close(self._begun)


class Cast:
    """Who takes part, by name."""

    def __init__(self, part: Part, random: Random) -> None:
        self._part, self._random = part, random
        self._identities = iter(range(1 << 30))
        self._plays: dict[str, Callable[[int], int]] = {
            "mover": partial(move, part),
            "taker": partial(consume, part, part.near, SOURCE),
        }
        for name in part.targets:
            self._plays[f"consumer of {name}"] = partial(consume, part, part.far, name)
        self._living: dict[str, Actor] = {}
        for name in ["publisher", *self._plays]:
            self._start(name)

    def _start(self, name: str) -> None:
        play = self._plays.get(name) or partial(publish, self._part, next(self._identities))
        self._living[name] = Actor(play, self._part.folder / f"{name}.errors")

    def kill_one(self) -> str:
        """At a random instant, the mover as often as all others together: who it was.

        Some are killed before they have begun."""
        others = [name for name in self._living if name != "mover"]
        name = self._random.choice(["mover"] * len(others) + others)
        victim = self._living[name]
        if self._random.random() > EARLY:
            for each in self._living.values():
                each.begins()
        victim.lives(self._random.uniform(0, LIFE_SECONDS))
        victim.kill()
        self._start(name)
        return name

    def kill_all(self) -> None:
        for each in self._living.values():
            each.kill()


def declare(near: Broker, far: Broker, part: Part) -> None:
    near.declare_queue(SOURCE, slots=SLOTS)
    for name in part.targets:
        far.declare_queue(name, **TARGETS[part.kind])
    if part.kind == "topic":
        far.declare_exchange(EXCHANGE, "topic")
        for name, pattern in PATTERNS.items():
            far.bind(EXCHANGE, name, pattern)


def goes_on(far: Broker, part: Part) -> list[str]:
    """All that live get on with it: more than any ring holds arrives."""
    with Follower(far, "test", from_now=True) as follower:
        follower.add(far.queue(part.targets[0]))
        arrived = 0
        while arrived < 3 * SLOTS:
            if not follower.wait(PATIENCE_SECONDS):
                return [f"nothing moves any more, after {arrived} messages"]
            batch = follower.read()
            arrived += batch.messages if batch else 0
            follower.release_all()
    return []


def finish(near: Broker, far: Broker, part: Part) -> int:
    """Nobody lives: move and take what is left, and say how many messages there were."""
    source = near.queue(SOURCE)
    with mover_of(part) as mover:
        moved = 1
        while moved > 0:
            take_all(source, part.notes(SOURCE))
            for name in part.targets:  # so that there is room
                take_all(far.queue(name), part.notes(name))
            moved = mover.move()
    if part.kind == "page":  # what is in pages comes out by and by
        target = far.queue(TARGET)
        with part.notes(TARGET).open("ab", buffering=0) as file:
            while len(target) > 0:
                take(target, file, PATIENCE_SECONDS)
    return near.queue(SOURCE).statistics().published


def play(folder: Path, kind: str, kills: int, seed: int) -> Outcome:
    outcome, random = Outcome(kind, seed), Random(seed)
    with ExitStack() as opened:
        names = [opened.enter_context(vhost_for_a_while()) for _ in range(2)]
        part = Part(names[0], names[1], folder, kind)
        near, far, pagers = (
            opened.enter_context(shmbroker.connect(f"shm://{name}", create=True, name="test"))
            for name in (part.near, part.far, part.far)
        )
        if kind == "page":
            opened.enter_context(Pager(pagers, folder / "pages"))
        declare(near, far, part)
        with mover_of(part):
            pass  # from now on its gate keeps all that it has not moved
        cast = Cast(part, random)
        try:
            for _ in range(kills):
                name = cast.kill_one()
                outcome.kills[name] = outcome.kills.get(name, 0) + 1
                if random.random() < REPAIRED:
                    near.repair()
                    far.repair()
            outcome.faults += goes_on(far, part)
        finally:
            cast.kill_all()
        near.repair()
        far.repair()
        outcome.messages = finish(near, far, part)
        outcome.faults += faults(part)
    return outcome
