"""Runs on a timetable, through a queue of ours and through the bare ring.

    producer, on a timetable ──► queue, or bare ring ──► consumer

The bare ring is a cache line for each message in shared memory, which holds when the message was
due: no messenger of two processes can be faster.  What the machine does to them it does to ours.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from shmbroker import connect, vhost
from shmbroker.ipc.latency.latency import Histogram
from shmbroker.perf.machine.child import child
from shmbroker.perf.machine.client import Loops, Native
from shmbroker.perf.machine.histograms import histogram_of
from shmbroker.perf.machine.pinning import pin
from shmbroker.perf.machine.workspace import unique_token

SECONDS = 1.0
SPIN_SECONDS = 1.0
SLOTS = LINES = 1 << 16
LINE_BYTES = 64
LEAD_NS = 100_000_000  # both are ready before the first message is due
PATIENCE = 60.0
BODY = struct.Struct("q56x")
NEAR_NS = 200_000


@dataclass(frozen=True)
class Pace:
    """How a run is to go."""

    rate: int
    seconds: float = SECONDS
    burst: int = 1
    client: str = "c"
    stall: float = 0.0
    """The consumer does nothing for so long, half way through."""

    @property
    def count(self) -> int:
        return max(self.burst, int(self.rate * self.seconds))

    @property
    def timetable(self) -> str:
        burst = f" in bursts of {self.burst}" if self.burst > 1 else ""
        return f"{self.rate:,}/s{burst}"

    def __str__(self) -> str:
        return f"{self.client}, {self.timetable}"


@dataclass(frozen=True)
class Run:
    """One run: how long each message took since it was due, and how many came a second."""

    histogram: Histogram
    achieved: float


class Loop(Protocol):
    """Both ends of what carries the messages, of which a process uses one."""

    def produce(self, pace: Pace, start: int) -> None: ...

    def consume(self, pace: Pace) -> tuple[array[int], int]:
        """How long each took since it was due, and when the last one came."""


class InC:
    """The loops of native/paced.c."""

    def __init__(self, token: str) -> None:
        self._loops = Loops("paced.c", token, SPIN_SECONDS)

    def produce(self, pace: Pace, start: int) -> None:
        self._loops.run("paced_produce", None, pace.count, pace.burst, 1e9 / pace.rate, start)

    def consume(self, pace: Pace) -> tuple[array[int], int]:
        took, last = array("q", bytes(8 * pace.count)), array("q", [0])
        stall = (pace.count // 2, int(pace.stall * 1e9))
        self._loops.run("paced_consume", None, pace.count, *stall, took, last)
        return took, last[0]


class InPython:
    def __init__(self, token: str) -> None:
        self._queue = connect(f"shm://{token}", spin=SPIN_SECONDS).queue("paced")

    def produce(self, pace: Pace, start: int) -> None:
        publish, clock, gap = self._queue.publish, time.monotonic_ns, 1e9 / pace.rate
        for each in range(pace.count):
            due = start + int(gap * (each // pace.burst * pace.burst))
            while (left := due - clock()) > 0:
                if left > NEAR_NS:
                    time.sleep((left - NEAR_NS / 2) / 1e9)
            publish(BODY.pack(due), timeout=PATIENCE)

    def consume(self, pace: Pace) -> tuple[array[int], int]:
        receive, clock, now = self._queue.receive, time.monotonic_ns, 0
        took = array("q", bytes(8 * pace.count))
        for each in range(pace.count):
            if each == pace.count // 2:
                time.sleep(pace.stall)
            (due,) = BODY.unpack(receive(timeout=PATIENCE))
            now = clock()
            took[each] = now - due
        return took, now


class BareRing:
    """Made before the other process is."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, LINES * LINE_BYTES)
        self._address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(self._memory)))
        self._native = Native("paced.c")

    def produce(self, pace: Pace, start: int) -> None:
        self._touch()
        timetable = (pace.count, pace.burst, 1e9 / pace.rate, start)
        self._native.call("paced_produce", None, self._address, *timetable)

    def consume(self, pace: Pace) -> tuple[array[int], int]:
        self._touch()
        took, last = array("q", bytes(8 * pace.count)), array("q", [0])
        self._native.call("paced_consume", None, self._address, pace.count, 0, 0, took, last)
        return took, last[0]

    def _touch(self) -> None:
        """Each process maps the pages when it first looks at them."""
        bytes(self._memory)


CLIENTS: dict[str, Callable[[str], Loop]] = {"c": InC, "python": InPython}


def run(pace: Pace) -> Run:
    token = unique_token("open-loop")
    with connect(f"shm://{token}", create=True) as broker:
        broker.declare_queue("paced", slots=SLOTS)
    try:
        return _run(pace, lambda: CLIENTS[pace.client](token))
    finally:
        vhost.delete(token, force=True)


def run_bare(pace: Pace) -> Run:
    """In C, whatever the client is, and without its stall."""
    ring = BareRing()
    return _run(pace, lambda: ring)


def _run(pace: Pace, loop: Callable[[], Loop]) -> Run:
    """Each process has its own loop."""
    allowed = os.sched_getaffinity(0)
    start = time.monotonic_ns() + LEAD_NS

    def produce() -> None:
        pin(1)
        loop().produce(pace, start)

    try:
        with child(produce):
            pin(0)
            took, last = loop().consume(pace)
    finally:
        os.sched_setaffinity(0, allowed)
    return Run(histogram_of(took), pace.count / ((last - start) / 1e9))
