"""A live is killed, its replica takes over, and the killed one comes back as the replica; again.

    program ──► vhost of the live ──► journal ──► frames ──► journal of the replica, warm rings
                        ✗ kill -9                                   └──► live

The program publishes numbers, waits for `replicated`, and consumes some of them.  After each
takeover the queue must have every number that was confirmed and not acknowledged, in order, each
with the body that it was published with, flagged as delivered before.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from select import select
from threading import Event

import shmbroker
from shmbroker import Queue, Unconfirmed
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.perf.machine.process import Process
from tests.conftest import vhost_for_a_while
from tests.support.replicas import PATIENCE, Pair, wait_for

QUEUE = "orders"
SOON = 0.05
LATEST_SECONDS = 0.05
SEGMENT = 256 << 10
LARGEST = 20_000


@dataclass
class Outcome:
    seed: int
    kills: int = 0
    confirmed: int = 0
    resumed: int = 0
    copied: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = "; ".join(self.faults) or "no fault"
        return (
            f"seed {self.seed}: {self.kills} kills, {self.confirmed} messages confirmed; replicas "
            f"went on {self.resumed} times, and got all anew {self.copied} times: {told}"
        )


class Member:
    """In a process of its own: a replica, or the first live."""

    def __init__(self, pair: Pair, name: str, epoch: int = 0) -> None:
        """`epoch`: it is live at once."""
        self.name = name
        self._orders, self._order = os.pipe()
        self._hear, self._say = os.pipe()
        self._pair = pair
        self._before = len(pair.lines(name))
        self.process = Process(lambda: self._live(epoch), pair.folder / f"{name}.errors")
        os.close(self._orders)
        os.close(self._say)

    def _live(self, epoch: int) -> int:
        with ExitStack() as opened:
            if epoch:
                opened.enter_context(self._pair.live(self.name, epoch))
            else:
                replica = opened.enter_context(self._pair.replica(self.name))
                granted = int(os.read(self._orders, 20))
                _, journaler = replica.take_over(granted)
                opened.enter_context(self._pair.serving(self.name, journaler))
            os.write(self._say, b"!")
            Event().wait()
        return 0

    def lines(self) -> list[dict[str, object]]:
        """Of this life."""
        lines = self._pair.lines(self.name)[self._before :]
        return [each for each in lines if each.get("event") == "replica"]

    def is_live(self) -> None:
        assert select([self._hear], [], [], PATIENCE)[0], self.process.errors.read_text()
        assert os.read(self._hear, 1), self.process.errors.read_text()

    def take_over(self, epoch: int) -> None:
        os.write(self._order, b"%d" % epoch)
        self.is_live()

    def kill(self) -> None:
        self.process.kill()
        for each in (self._order, self._hear):
            os.close(each)


def body_of(number: int) -> bytes:
    return b"%d|" % number + Random(number).randbytes(number * 7919 % LARGEST)


@dataclass
class Account:
    """What is known of the queue; numbers are published one after the other."""

    next: int = 0
    confirmed: int = 0
    """All below were."""
    acknowledged: int = 0
    """All below were, and it may not be written yet."""
    kept: int = 0
    """All below were acknowledged, and that is written."""

    def publish(self, queue: Queue, over: threading.Event) -> None:
        while not over.is_set():
            queue.publish(body_of(self.next), confirm="shm", timeout=PATIENCE)
            self.next += 1
            while not over.is_set():
                try:
                    queue.confirm(level="replicated", timeout=SOON)
                except Unconfirmed:
                    continue
                self.confirmed = self.next
                break

    def faults(self, queue: Queue) -> Iterator[str]:
        """What the queue of the one that took over has."""
        numbers = []
        for message in queue.browse():
            number = int(message.body.partition(b"|")[0])
            numbers.append(number)
            if message.body != body_of(number):
                yield f"message {number} has another body"
            if not message.deliveries:
                yield f"message {number} is not flagged as delivered before"
        # what was taken after the last takeover may have been published unconfirmed
        known = max(self.confirmed, self.acknowledged)
        first, end = (numbers[0], numbers[-1] + 1) if numbers else (known, known)
        if numbers != list(range(first, end)):
            yield f"not all from {first} to {end}, in order"
        if not self.kept <= first <= self.acknowledged:
            yield f"it begins at {first}, not at {self.kept} to {self.acknowledged}"
        if not self.confirmed <= end <= self.next:
            yield f"it ends at {end}, not at {self.confirmed} to {self.next}"
        self.next = end

    def consume(self, queue: Queue, count: int) -> None:
        for message in queue.get_many(count, timeout=PATIENCE) if count else []:
            self.acknowledged = int(message.body.partition(b"|")[0]) + 1
            message.ack()


def play(folder: Path, kills: int, seed: int) -> Outcome:
    outcome, random, account = Outcome(seed), Random(seed), Account()
    with ExitStack() as opened:
        names = {each: opened.enter_context(vhost_for_a_while()) for each in ("one", "two")}
        pair = Pair(folder, names, segment_bytes=SEGMENT)
        vhosts.create(names["one"], arena_bytes=pair.arena_bytes)
        live, replica = Member(pair, "one", epoch=1), Member(pair, "two")
        opened.callback(lambda: (live.kill(), replica.kill()))
        live.is_live()
        with shmbroker.connect(f"shm://{names['one']}") as broker:
            broker.declare_queue(QUEUE, durable=True, slots=4096)
        for epoch in range(2, kills + 2):
            _in_sync(pair, live, replica)
            _kill(pair, live, account, random)
            outcome.kills += 1
            replica.take_over(epoch)
            with shmbroker.connect(f"shm://{names[replica.name]}") as broker:
                queue = broker.queue(QUEUE)
                outcome.faults += [f"epoch {epoch}: {each}" for each in account.faults(queue)]
                account.consume(queue, random.randint(0, account.next - account.acknowledged))
            live, replica = replica, Member(pair, live.name)
            if outcome.faults:
                break
        outcome.confirmed = account.confirmed
        for name in names:
            lines = [each for each in pair.lines(name) if each.get("event") == "replica"]
            anew = sum(each["state"] == "set aside" for each in lines)
            outcome.copied += anew
            outcome.resumed += sum(each["state"] == "joining" for each in lines) - anew
    return outcome


def _in_sync(pair: Pair, live: Member, replica: Member) -> None:
    """It has all that is there, and knows it."""
    wait_for(
        lambda: any(each["state"] == "in sync" for each in replica.lines()),
        lambda: (live.lines()[-5:], replica.lines()[-5:], replica.process.errors.read_text()),
    )
    with shmbroker.connect(f"shm://{pair.vhosts[live.name]}") as broker:
        queue = broker.queue(QUEUE)
        if queue.published:
            queue.confirm(level="replicated", timeout=PATIENCE)


def _kill(pair: Pair, live: Member, account: Account, random: Random) -> None:
    """While the program publishes."""
    over = threading.Event()
    with shmbroker.connect(f"shm://{pair.vhosts[live.name]}") as broker:
        queue = broker.queue(QUEUE)
        account.kept = account.acknowledged if account.next == account.confirmed else account.kept
        publishing = threading.Thread(target=account.publish, args=(queue, over))
        publishing.start()
        over.wait(random.uniform(0, LATEST_SECONDS))
        live.kill()
        over.set()
        publishing.join()
