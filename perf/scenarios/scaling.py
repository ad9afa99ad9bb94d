"""python -m shmbroker.perf.scenarios.scaling: what becomes of the rate with more of everything.

    1, 2, 4, 8 producers ──► (exchange, n bindings) ──► n queues, in turns ──► 1, 2, 4, 8 consumers

One number grows, the others stay 1, and messages 64 bytes.  Producers publish one at a time for as
long as a run takes; consumers receive one at a time, copied out.  Each message is a number, and
what was received is what was sent, or the run counts for nothing.  How long messages waited in the
first queue is recorded by the queue itself, one in 16.

With more processes than processors these take turns, and whoever waits sleeps.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from multiprocessing import get_context
from statistics import median
from typing import TYPE_CHECKING, Final

import click

from shmbroker import Queue, connect, vhost
from shmbroker.ipc.latency.latency import Histogram
from shmbroker.perf.harness.report import aligned
from shmbroker.perf.harness.verdict import SumsDiffer
from shmbroker.perf.machine.child import child
from shmbroker.perf.machine.client import Loops
from shmbroker.perf.machine.histograms import merged
from shmbroker.perf.machine.pinning import pin
from shmbroker.perf.machine.size import format_size
from shmbroker.perf.machine.workspace import unique_token
from shmbroker.perf.scenarios.command import DURATION, POSITIVE, option, several
from shmbroker.perf.scenarios.findings import Findings
from shmbroker.perf.scenarios.scenario import Scenario
from shmbroker.perf.scenarios.steps import Steps

if TYPE_CHECKING:
    from shmbroker.perf.scenarios.page import Page

NUMBERS: Final[dict[str, tuple[int, ...]]] = {
    "producers": (1, 2, 4, 8),
    "consumers": (1, 2, 4, 8),
    "queues": (1, 10, 100, 1000),
    "bindings": (1, 10, 100, 1000),
    "size": (64, 1 << 10, 16 << 10, 256 << 10, 1 << 20),
}
SECONDS, ROUNDS = 0.5, 3
SPIN_SECONDS = 1.0
PATIENCE = 60.0  # the other process has failed
ONE_IN = 16
LOOK = 16
SLOTS, SLOTS_MANY, SLOTS_MIN = 1024, 64, 16
IN_FLIGHT_BYTES = 16 << 20
STOP = -1
KEY = "us.ny.fx"
STAMP = struct.Struct("<q")


@dataclass(frozen=True)
class Point:
    """How many there are of everything."""

    client: str
    producers: int = 1
    consumers: int = 1
    queues: int = 1
    bindings: int = 0
    """Of a topic exchange, of which one takes all messages; 0: without an exchange."""
    size: int = 64

    @property
    def is_crowded(self) -> bool:
        return self.producers + self.consumers > len(os.sched_getaffinity(0))

    @property
    def slots(self) -> int:
        if self.queues > 10:
            return SLOTS_MANY
        return max(SLOTS_MIN, min(SLOTS, IN_FLIGHT_BYTES // self.size))

    @property
    def spin(self) -> float | None:
        return None if self.is_crowded else SPIN_SECONDS


# --- the loops, in C and in Python ----------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """What one process did: how many messages, the sum of their numbers, and when it had the last
    one, or had sent the first one to each queue, so that all were at hand."""

    count: int
    total: int
    at_ns: int


class InC:
    """The loops of native/scaling.c."""

    def __init__(self, token: str, point: Point) -> None:
        self._loops = Loops("scaling.c", token, point.spin)
        self._ends = ctypes.c_void_p()
        shape = (point.queues, int(point.bindings > 0), point.size)
        self._loops.run("scaling_open", *shape, ctypes.byref(self._ends))

    def produce(self, index: int, producers: int, lasting_ns: int) -> Part:
        return self._told("scaling_produce", index, producers, lasting_ns)

    def consume(self) -> Part:
        return self._told("scaling_consume")

    def stop(self, consumers: int) -> None:
        self._loops.run("scaling_stop", self._ends, consumers)

    def _told(self, loop: str, *arguments: int) -> Part:
        told = array("q", bytes(24))
        self._loops.run(loop, self._ends, *arguments, told)
        return Part(*told)


class InPython:
    def __init__(self, token: str, point: Point) -> None:
        broker = connect(f"shm://{token}", spin=point.spin)
        self._queues = [broker.queue(queue_name(each)) for each in range(point.queues)]
        self._rest = bytes(point.size - STAMP.size)
        self._publish: list[Callable[[bytes], object]] = [each.publish for each in self._queues]
        if point.bindings:
            self._publish = [partial(broker.exchange("exchange").publish, key=KEY)]

    def produce(self, index: int, producers: int, lasting_ns: int) -> Part:
        publish, pack, rest, clock = self._publish, STAMP.pack, self._rest, time.monotonic_ns
        count = total = began = until_ns = 0
        stamp, turns, first = index, len(publish), len(self._queues)
        while count <= first or count % LOOK or clock() < until_ns:
            if count == first:
                began = clock()
                until_ns = began + lasting_ns
            publish[count % turns](pack(stamp) + rest)
            total += stamp
            count += 1
            stamp += producers
        return Part(count, total, began)

    def consume(self) -> Part:
        count = total = 0
        receivers = [each.receive for each in self._queues]
        unpack = STAMP.unpack_from
        while receivers:
            for receive in list(receivers):
                (stamp,) = unpack(receive(timeout=PATIENCE))
                if stamp < 0:
                    receivers.remove(receive)
                else:
                    count += 1
                    total += stamp
        return Part(count, total, time.monotonic_ns())

    def stop(self, consumers: int) -> None:
        for queue in self._queues * consumers:
            queue.publish(STAMP.pack(STOP) + self._rest)


CLIENTS: dict[str, Callable[[str, Point], InC | InPython]] = {"c": InC, "python": InPython}


def queue_name(number: int) -> str:
    return f"queue-{number}"


# --- one run --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """Messages a second, from when the first producer had been at each queue until the last
    consumer had its last one; and how long they waited in the first queue."""

    rate: float
    waited: Histogram


@contextmanager
def laid_out(token: str, point: Point) -> Iterator[Queue]:
    """The first queue; its producers publish to all, by an exchange if there are bindings."""
    with connect(f"shm://{token}", create=True) as broker:
        try:
            for each in reversed(range(point.queues)):
                first = broker.declare_queue(queue_name(each), slots=point.slots)
            if point.bindings:
                exchange = broker.declare_exchange("exchange", "topic").name
                for each in range(point.bindings - 1):
                    broker.bind(exchange, queue_name(0), f"eu.{each}.*.fx")
                broker.bind(exchange, queue_name(0), "us.#")
            yield first
        finally:
            vhost.delete(token, force=True)


def run(point: Point, seconds: float) -> Run:
    """SumsDiffer unless what was received is what was sent."""
    token = unique_token("scaling")
    processes = point.producers + point.consumers
    context = get_context("fork")
    ready, produced = context.Barrier(processes), context.Barrier(point.producers)
    told = array("q", bytes(24 * processes))
    shared = memoryview(mmap.mmap(-1, 24 * processes)).cast("q")

    def work(number: int) -> None:
        pin(number)
        client = CLIENTS[point.client](token, point)
        ready.wait(PATIENCE)
        if number < point.consumers:
            part = client.consume()
        else:
            index = number - point.consumers
            part = client.produce(index, point.producers, int(seconds * 1e9))
            produced.wait(PATIENCE)
            if index == 0:
                client.stop(point.consumers)
        shared[3 * number : 3 * number + 3] = array("q", (part.count, part.total, part.at_ns))

    with laid_out(token, point) as first:
        first.latency(True, one_in=ONE_IN)
        with ExitStack() as stack:
            for number in range(processes):
                stack.enter_context(child(partial(work, number)))
        waited = first.histograms()["publish-take"]
    told = array("q", shared)
    parts = [Part(*told[3 * number : 3 * number + 3]) for number in range(processes)]
    consumers, producers = parts[: point.consumers], parts[point.consumers :]
    return Run(rate_of(consumers, producers, point.queues), waited)


def rate_of(consumers: Sequence[Part], producers: Sequence[Part], queues: int) -> float:
    sent, received = (
        (sum(each.count for each in parts), sum(each.total for each in parts))
        for parts in (producers, consumers)
    )
    if sent != received or not sent[0]:
        raise SumsDiffer("{} messages of sum {} were sent, {} of {} came".format(*sent, *received))
    spent = max(each.at_ns for each in consumers) - min(each.at_ns for each in producers)
    return (sent[0] - queues * len(producers)) / (spent / 1e9)


# --- what is told ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """All runs of one point."""

    of: str
    point: Point
    runs: Sequence[Run]

    @property
    def number(self) -> int:
        number: int = getattr(self.point, self.of)
        return number

    @property
    def name(self) -> str:
        shown = format_size(self.number) if self.of == "size" else f"{self.number:,} {self.of}"
        return f"{shown}, {self.point.client}"

    @property
    def rate(self) -> float:
        return median(each.rate for each in self.runs)

    @cached_property
    def waited(self) -> Histogram:
        return merged([each.waited for each in self.runs])

    def as_json(self) -> dict[str, object]:
        return {
            "name": f"scaling {self.name}",
            "rounds": [{"messages_per_s": each.rate} for each in self.runs],
        }


Curves = Mapping[str, Mapping[str, Sequence[Case]]]
"""By what grows, and by client."""


def curves_of(cases: Sequence[Case]) -> Curves:
    curves: dict[str, dict[str, list[Case]]] = {}
    for each in cases:
        curves.setdefault(each.of, {}).setdefault(each.point.client, []).append(each)
    return curves


def rows(cases: Sequence[Case]) -> Iterator[tuple[str, ...]]:
    for of, clients in curves_of(cases).items():
        for client, curve in clients.items():
            for each in curve:
                shown = format_size(each.number) if of == "size" else f"{each.number:,}"
                gigabytes = each.rate * each.point.size / 1e9
                yield (
                    of, client, "crowded" if each.point.is_crowded else "", shown,
                    f"{each.rate:,.0f}", f"{each.rate / curve[0].rate:.3g}", f"{gigabytes:.3g}",
                    f"{each.waited.percentile(50) / 1e3:,.1f}",
                    f"{each.waited.percentile(99) / 1e3:,.1f}",
                )  # fmt: skip


HEADER = (
    "",
    "client",
    "",
    "number",
    "messages/s",
    "x the first",
    "GB/s",
    "waited p50 us",
    "p99 us",
)


def draw(cases: Sequence[Case], page: Page) -> None:
    from shmbroker.perf.scenarios import pictures
    from shmbroker.perf.scenarios.page import Drawing, Number

    for of, clients in curves_of(cases).items():
        lines = {
            f"{client}": ([each.number for each in curve], [each.rate for each in curve])
            for client, curve in clients.items()
        }
        what = "bytes of a message" if of == "size" else of
        title = f"Messages a second by {'size' if of == 'size' else f'the number of {of}'}"
        drawn = pictures.scaling_curves(lines, f"{what} (log scale)", title, in_bytes=of == "size")
        page.draw(Drawing(f"scaling-{of}", f"{title}, a line for each client", drawn))
    page.table(HEADER, [[*row[:3], *map(Number, row[3:])] for row in rows(cases)], every=True)


def measure(
    steps: Steps, dimensions: Sequence[str], clients: Sequence[str], numbers: Sequence[int],
    seconds: float, rounds: int,
) -> Findings:  # fmt: skip
    dimensions = dimensions or list(NUMBERS)
    if "size" in dimensions and min(numbers, default=STAMP.size) < STAMP.size:
        raise click.UsageError(f"a message has at least {STAMP.size} bytes")
    points = [
        (of, Point(client, **{of: number}))
        for of in dimensions
        for client in clients or CLIENTS
        for number in sorted(numbers or NUMBERS[of])
    ]
    runs: list[list[Run]] = [[] for _ in points]
    steps.expect(rounds * len(points))
    for number in range(rounds):
        for (of, point), done in zip(points, runs, strict=True):
            steps.next(f"round {number + 1} of {rounds}: {Case(of, point, ()).name}")
            done.append(run(point, seconds))
    cases = [Case(of, point, done) for (of, point), done in zip(points, runs, strict=True)]
    return Findings(
        "\n".join(aligned([HEADER, *rows(cases)])),
        [each.as_json() for each in cases],
        "publish-take",
        partial(draw, cases),
        {f"scaling {each.name}": each.waited for each in cases},
    )


SCENARIO = Scenario(
    "scaling",
    help="""Measure the rate with more producers, consumers, queues, bindings or bytes.

    One number grows, the others stay 1.  "Crowded" means more processes than processors.
    """,
    examples="""
    shmbroker bench scaling --html scaling.html
    shmbroker bench scaling --with producers --client c --number 1 --number 16
    shmbroker bench scaling --with size --rounds 8 --compare before.json
    """,
    options=(
        several("--with", "dimensions", type=click.Choice(list(NUMBERS)), help="What grows."),
        several("--client", "clients", type=click.Choice(list(CLIENTS)),
                help="Language of the loops."),
        several("--number", "numbers", type=POSITIVE, metavar="N",
                help="Its value; sizes in bytes, at least 8.  [1 to 8; 1 to 1,000; 64 to 1 MiB]"),
        option("--seconds", type=DURATION, default=SECONDS,
               help="Length of a run.  [500ms]"),
        option("--rounds", type=POSITIVE, default=ROUNDS, show_default=True,
               help="Runs of each number, in turns."),
    ),
    measure=measure,
    pinning="process i on processor i, round and round: consumers first",
    full=("--rounds=5",),
    quick=("--rounds=1", "--seconds=100ms"),
)  # fmt: skip
COMMAND = SCENARIO.command
main = COMMAND.main

if __name__ == "__main__":
    sys.exit(main())
