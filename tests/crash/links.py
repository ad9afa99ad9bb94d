"""A link between two brokers under load: kills, stops, cuts and losses at random, of either end.

Each message is there once, and in the order of its source queue.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import shmbroker
from shmbroker import Empty, Queue, QueueFull
from shmbroker.netbridge.carrier.source import Shipped
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.process import Process
from tests.conftest import vhost_for_a_while
from tests.support.forwarder import Wire, forwarded
from tests.support.host import journaling
from tests.support.hosts import Host, has_hosts, wired
from tests.support.link import PATIENCE, Pair

QUEUES = ("first", "second", "third")
ENDS = ("near", "far")
LIFE_SECONDS = 0.15
FAULT_SECONDS = 0.6
SIZES = (8, 64, 2000, 100_000)
NUMBER_BYTES = 8
BURST = 20
TIMES = {
    "wired": LinkTimes(heartbeat_interval=0.05),
    "slow": LinkTimes(heartbeat_interval=0.15),  # TCP repeats what was lost after 200 ms
    "loopback": LinkTimes(heartbeat_interval=0.05),
}
"""Some of the cuts are shorter than the silence that ends a link."""
SLOW = Wire(delay=0.005, jitter=0.004, loss=0.01)
KINDS = ("wired", "slow") if has_hosts() else ("loopback",)


@dataclass
class Outcome:
    kind: str
    seed: int
    faults: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    """What was done to it, by name."""
    messages: int = 0
    links: int = 0
    """How often it was up."""

    def __str__(self) -> str:
        done = ", ".join(f"{many} {name}" for name, many in sorted(self.done.items()))
        verdict = "; ".join(self.faults) or "each message once and in order"
        return (
            f"{self.kind}, seed {self.seed}: {done}; up {self.links} times;"
            f" {self.messages} messages: {verdict}"
        )


def body(number: int) -> bytes:
    """Its content says which it is, and how long."""
    text = number.to_bytes(NUMBER_BYTES, "little")
    return text * (SIZES[number % 97 % len(SIZES)] // NUMBER_BYTES)


class Load:
    """Publishes at one end, takes at the other, and takes note."""

    def __init__(self, source: Queue, target: Queue, **options: Any) -> None:
        self.options = options
        self.source, self.target = source, target
        self.published = self.taken = 0
        self.fault = ""

    def step(self, burst: int = BURST) -> None:
        for _ in range(burst):
            try:
                self.source.publish(body(self.published), timeout=0, **self.options)
            except QueueFull:
                break
            self.published += 1
        self.take(0.001)

    def take(self, timeout: float) -> None:
        try:
            while True:
                self._note(self.target.receive(timeout=timeout))
                timeout = 0
        except Empty:
            return

    def _note(self, came: bytes) -> None:
        if came != body(self.taken) and not self.fault:
            number = int.from_bytes(came[:NUMBER_BYTES], "little")
            self.fault = f"{self.source.name}: {number} came instead of {self.taken}"
        self.taken += 1

    def finish(self, patience: float = PATIENCE) -> str:
        until = time.monotonic() + patience
        while self.taken < self.published and time.monotonic() < until:
            self.take(0.05)
        if self.taken != self.published and not self.fault:
            self.fault = f"{self.source.name}: {self.published} published, {self.taken} came"
        return self.fault


class Stage:
    """Both ends, what runs between them, and what strikes them."""

    def __init__(
        self, pair: Pair, loads: list[Load], random: Random, hosts: tuple[Host, Host] | None
    ) -> None:
        self._pair, self._loads, self._random, self._hosts = pair, loads, random, hosts
        self._cast: dict[str, Process] = {end: pair.process(end) for end in ("far", "near")}
        strikes = [self.kill, self.kill, self.stop]
        if hosts is not None:
            strikes += [self.close_sockets, self.cut, self.cut_one_way, self.lose]
        self._strikes: list[Callable[[], str]] = strikes

    def begin(self) -> None:
        """The link is up before the first blow, which is one that surely ends it."""
        until = time.monotonic() + PATIENCE
        while "up" not in self._pair.states("near"):
            assert time.monotonic() < until, "the link did not come up"
            self.run(0.05)

    def run(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for load in self._loads:
                load.step()

    def strike(self) -> str:
        self.run(self._random.random() * LIFE_SECONDS)
        return self._random.choice(self._strikes)()

    def _last(self) -> None:
        self.run(self._random.random() * FAULT_SECONDS)

    def kill(self) -> str:
        end = self._random.choice(ENDS)
        status = self._cast[end].kill()
        assert status == -9, self._cast[end].errors.read_text()
        self._cast[end] = self._pair.process(end)
        return f"kills of {end}"

    def stop(self) -> str:
        end = self._random.choice(ENDS)
        self._cast[end].stop()
        self._last()
        self._cast[end].go_on()
        return f"stops of {end}"

    def _at(self, hosts: list[Host], fault: Callable[[Host], None]) -> None:
        for host in hosts:
            fault(host)
        self._last()
        for host in hosts:
            host.heal()

    def close_sockets(self) -> str:
        assert self._hosts is not None
        self._at(list(self._hosts), Host.resets)
        return "cuts that close"

    def cut(self) -> str:
        assert self._hosts is not None
        self._at(list(self._hosts), Host.hears_nothing)
        return "silent cuts"

    def cut_one_way(self) -> str:
        assert self._hosts is not None
        self._at([self._random.choice(self._hosts)], Host.hears_nothing)
        return "one-way cuts"

    def lose(self) -> str:
        assert self._hosts is not None
        percent = self._random.choice((2, 10, 30))
        self._at([self._random.choice(self._hosts)], lambda host: host.loses(percent))
        return "losses"

    def finish(self) -> list[str]:
        return [fault for load in self._loads if (fault := load.finish())]

    def kill_all(self) -> None:
        for each in self._cast.values():
            each.kill()


@contextmanager
def _hosts(kind: str, folder: Path, seed: int) -> Iterator[tuple[Host, Host] | None]:
    if kind == "wired":
        with wired() as hosts:
            yield hosts
    elif kind == "slow":
        with forwarded(Wire(SLOW.delay, SLOW.jitter, SLOW.loss, seed), folder) as hosts:
            yield hosts
    else:
        yield None


def play(folder: Path, kind: str, durable: bool, strikes: int, seed: int) -> Outcome:
    name = f"{'durable' if durable else 'memory'}, {kind}"
    outcome, random = Outcome(name, seed), Random(seed)
    with ExitStack() as opened:
        hosts = opened.enter_context(_hosts(kind, folder, seed))
        names = [opened.enter_context(vhost_for_a_while()) for _ in range(2)]
        near, far = (
            opened.enter_context(shmbroker.connect(f"shm://{name}", create=True, name="test"))
            for name in names
        )
        if durable:
            for vhost in names:
                opened.enter_context(journaling(vhost, folder / vhost))
        ships = tuple(Shipped(queue, queue) for queue in QUEUES)
        pair = Pair(*names, free_port(), folder, TIMES[kind], ships, hosts=hosts)
        options = {"confirm": "shm"} if durable else {}
        loads = [
            Load(
                near.declare_queue(queue, slots=256, durable=durable),
                far.declare_queue(queue, slots=128, durable=durable),
                **options,
            )
            for queue in QUEUES
        ]
        stage = Stage(pair, loads, random, hosts)
        try:
            stage.begin()
            outcome.done[stage.kill()] += 1
            for _ in range(strikes - 1):
                outcome.done[stage.strike()] += 1
            outcome.faults += stage.finish()
        finally:
            stage.kill_all()
        outcome.messages = sum(load.published for load in loads)
        outcome.links = sum(line.get("state") == "up" for line in pair.lines("near"))
    return outcome
