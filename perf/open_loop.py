"""python -m shmbroker.perf.open_loop: latency at a fixed rate, and how far the rate can go.

    producer, on a timetable ──► queue ──► consumer, measures from when each message was due

A producer that waits for its turn (a closed loop) sends less while the broker is slow, and so
measures the slow moments less often than their victims feel them: coordinated omission.  Here each
message counts from when it was due, whoever is to blame that it comes late.

Rates rise until the broker no longer follows; the knee is the highest at which it did, and p99 was
within ten times that of the lowest rate.  Each rate is run several times, with the others in
between; percentiles are of all its runs.  What the machine itself adds is measured before, by a
loop that only looks at the clock.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import struct
import sys
import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

from shmbroker import connect, vhost
from shmbroker.ipc import hlog
from shmbroker.ipc.latency import Histogram, Range
from shmbroker.perf import compare
from shmbroker.perf.child import child
from shmbroker.perf.client import compiled_client
from shmbroker.perf.machine import Description, machine
from shmbroker.perf.pinning import pin
from shmbroker.perf.report import aligned
from shmbroker.perf.spark.geometry import Geometry
from shmbroker.perf.workspace import unique_token

RATES = (10_000, 100_000, 500_000, 1_000_000, 2_000_000, 4_000_000)
SECONDS, ROUNDS = 1.0, 3
SPIN_SECONDS = 1.0
SLOTS = 65536
LEAD_NS = 100_000_000  # both are ready before the first message is due
PATIENCE = 60.0
LADDER = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
FOLLOWS, KNEE = 0.98, 10
GEOMETRY = Geometry(1, 3_600_000_000_000, 3)
BODY = struct.Struct("q56x")
NEAR_NS = 200_000


@dataclass(frozen=True)
class Pace:
    """How a run is to go."""

    rate: int
    seconds: float = SECONDS
    burst: int = 1
    client: str = "c"
    stall_seconds: float = 0.0
    """The consumer does nothing for so long, half way through."""

    @property
    def count(self) -> int:
        return max(self.burst, int(self.rate * self.seconds))

    def __str__(self) -> str:
        burst = f" in bursts of {self.burst}" if self.burst > 1 else ""
        return f"{self.client}, {self.rate:,}/s{burst}"


@dataclass(frozen=True)
class Run:
    """One run: how long each message took since it was due, and how many came a second."""

    histogram: Histogram
    achieved: float


def histogram_of(values: Sequence[int]) -> Histogram:
    counts = Counter(GEOMETRY.index(max(0, min(value, GEOMETRY.highest))) for value in values)
    ordered = sorted(counts)
    shape = Range(GEOMETRY.lowest, GEOMETRY.highest, GEOMETRY.digits)
    return Histogram(shape, array("q", ordered), array("q", (counts[each] for each in ordered)))


def merged(histograms: Sequence[Histogram]) -> Histogram:
    counts: Counter[int] = Counter()
    for each in histograms:
        counts.update(dict(zip(each.indexes, each.counts, strict=True)))
    ordered = sorted(counts)
    values = array("q", (counts[each] for each in ordered))
    return Histogram(histograms[0].range, array("q", ordered), values)


def jitter(seconds: float = 0.5) -> Histogram:
    """Looking at the clock again and again: the gaps are the machine's, not the broker's."""
    gaps, now = [], time.monotonic_ns()
    end = now + int(seconds * 1e9)
    while now < end:
        before, now = now, time.monotonic_ns()
        gaps.append(now - before)
    return histogram_of(gaps)


# --- the two loops, in C and in Python ------------------------------------------------------------


class InC:
    """The loops of native/paced.c, with a connection of their own."""

    def __init__(self, token: str) -> None:
        self._library = ctypes.CDLL(compiled_client("paced.c"))
        self._connection = ctypes.c_void_p()
        spin, made = ctypes.c_int64(int(SPIN_SECONDS * 1e9)), ctypes.byref(self._connection)
        self._check(self._library.paced_connect(token.encode(), spin, made))

    def produce(self, pace: Pace, start: int) -> None:
        numbers = (ctypes.c_int64(pace.count), ctypes.c_int64(pace.burst))
        gap, begin = ctypes.c_double(1e9 / pace.rate), ctypes.c_int64(start)
        self._check(self._library.paced_produce(self._connection, *numbers, gap, begin))

    def consume(self, pace: Pace) -> tuple[array[int], int]:
        took, last = array("q", bytes(8 * pace.count)), ctypes.c_int64()
        given = (pace.count, pace.count // 2, int(pace.stall_seconds * 1e9))
        numbers = (ctypes.c_int64(each) for each in given)
        to = ctypes.c_void_p(took.buffer_info()[0])
        self._check(self._library.paced_consume(self._connection, *numbers, to, ctypes.byref(last)))
        return took, last.value

    @staticmethod
    def _check(code: int) -> None:
        assert code == 0, code


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
                time.sleep(pace.stall_seconds)
            (due,) = BODY.unpack(receive(timeout=PATIENCE))
            now = clock()
            took[each] = now - due
        return took, now


CLIENTS: dict[str, Callable[[str], InC | InPython]] = {"c": InC, "python": InPython}


def run(pace: Pace) -> Run:
    token = unique_token("open-loop")
    allowed = os.sched_getaffinity(0)
    with connect(f"shm://{token}", create=True) as broker:
        broker.declare_queue("paced", slots=SLOTS)
    client = CLIENTS[pace.client]
    start = time.monotonic_ns() + LEAD_NS

    def produce() -> None:
        pin(1)
        client(token).produce(pace, start)

    try:
        with child(produce):
            pin(0)
            took, last = client(token).consume(pace)
    finally:
        os.sched_setaffinity(0, allowed)
        vhost.delete(token, force=True)
    return Run(histogram_of(took), pace.count / ((last - start) / 1e9))


# --- what is told ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """All runs of one pace."""

    pace: Pace
    runs: Sequence[Run]

    @cached_property
    def histogram(self) -> Histogram:
        return merged([each.histogram for each in self.runs])

    @property
    def achieved(self) -> float:
        return median(each.achieved for each in self.runs)

    @property
    def follows(self) -> bool:
        return self.achieved >= FOLLOWS * self.pace.rate

    def row(self) -> tuple[str, ...]:
        told = self.histogram
        ladder = (f"{told.percentile(each) / 1e3:,.2f}" for each in LADDER)
        return (
            str(self.pace),
            "" if self.follows else "behind",
            "",
            f"{self.achieved:,.0f}/s",
            *ladder,
        )

    def as_json(self) -> dict[str, object]:
        return {
            "name": f"open-loop {self.pace}",
            "follows": self.follows,
            "rounds": [
                {"messages_per_s": each.achieved}
                | {f"p{point:g}_ns": each.histogram.percentile(point) for point in LADDER}
                for each in self.runs
            ],
        }


def knee(cases: Sequence[Case]) -> Case | None:
    """The highest rate that the broker followed, with p99 within ten times that of the lowest."""
    bound = KNEE * cases[0].histogram.percentile(99)
    return next(
        (
            each
            for each in sorted(cases, key=lambda case: -case.pace.rate)
            if each.follows and each.histogram.percentile(99) <= bound
        ),
        None,
    )


def table(cases: Sequence[Case], jitters: Histogram, described: Description) -> str:
    header = ("pace", "", "", "achieved", *(f"p{each:g} us" for each in LADDER[:-1]), "max us")
    gaps = ", ".join(
        f"p{each:g} {jitters.percentile(each) / 1e3:,.2f}" for each in (99.9, 99.99, 100)
    )
    found = knee(cases)
    return "\n".join([
        f"{described['cpu']}, Linux {described['kernel']}, load {os.getloadavg()[0]:.1f}",
        f"the machine's own gaps, us: {gaps}",
        *aligned([header, *(each.row() for each in cases)]),
        f"knee: {found.pace if found else 'below the lowest rate'}",
    ])  # fmt: skip


def log_of(cases: Sequence[Case], described: Description) -> str:
    """As .hlog, a tag for each pace."""
    now = time.time_ns()
    lines = [hlog.head(now, str(described["cpu"]), "perf", "open-loop")]
    lines += [
        hlog.line(hlog.Interval(str(each.pace), "due-taken", now, now + 10**9, each.histogram))
        for each in cases
    ]
    return "".join(lines)


def page_of(cases: Sequence[Case], jitters: Histogram, described: Description) -> str:
    """HTML with pictures; needs matplotlib, which is in the extra `latency`."""
    import numpy as np

    from shmbroker.perf import pictures
    from shmbroker.perf.page import Drawing, Number, Page, latency

    page = Page()
    page.note(f"{described['cpu']}, Linux {described['kernel']}; the machine's own gaps: p99.9 "
              f"{pictures.readable(jitters.percentile(99.9))}, max "
              f"{pictures.readable(jitters.maximum)}.")  # fmt: skip
    page.heading("Latency from when a message was due")
    curves = {}
    for each in cases:
        values, counts = zip(*each.histogram, strict=True)
        curves[str(each.pace)] = pictures.Curve(np.array(values), np.array(counts))
    drawn = pictures.percentile_curves(curves, "Latency by percentile, for each rate")
    page.draw(Drawing("percentiles", "latency by percentile, a curve for each rate", drawn))
    page.heading("How far the rate can go")
    page.draw(Drawing("knee", "latency by rate", pictures.rate_curves(
        [each.achieved for each in cases],
        {f"p{point:g}": [each.histogram.percentile(point) for each in cases]
         for point in (50.0, 99.0, 99.9)},
        "Latency by messages a second",
    )))  # fmt: skip
    found = knee(cases)
    page.note(f"Knee: {found.pace if found else 'below the lowest rate'}: the highest rate that "
              f"was followed with p99 within {KNEE} times that of the lowest.")  # fmt: skip
    page.table(
        ["pace", "achieved", *(f"p{each:g}" for each in LADDER)],
        [
            [
                str(each.pace), Number(f"{each.achieved:,.0f}/s", is_bad=not each.follows),
                *(latency(each.histogram.percentile(point)) for point in LADDER),
            ]
            for each in cases
        ],
    )  # fmt: skip
    return page.html("shmbroker: open loop")


def measure(paces: Sequence[Pace], rounds: int) -> list[Case]:
    runs: list[list[Run]] = [[] for _ in paces]
    for number in range(rounds):
        for pace, of in zip(paces, runs, strict=True):
            if sys.stderr.isatty():
                sys.stderr.write(f"\rround {number + 1} of {rounds}: {pace}\x1b[K")
            of.append(run(pace))
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    return [Case(pace, of) for pace, of in zip(paces, runs, strict=True)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m shmbroker.perf.open_loop",
        description="Latency at fixed rates, from when each message was due.",
    )
    parser.add_argument("--rate", type=int, action="append", metavar="N", help="messages a second")
    parser.add_argument("--client", choices=CLIENTS, default="c")
    parser.add_argument("--burst", type=int, default=1, metavar="N", help="so many are due at once")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--stall", type=float, default=0.0, metavar="SECONDS",
                        help="the consumer stops for so long half way through")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--hlog", type=Path, metavar="FILE")
    parser.add_argument("--html", type=Path, metavar="FILE")
    parser.add_argument("--compare", type=Path, metavar="OLD", help="its JSON of before")
    asked = parser.parse_args(arguments)
    rates = asked.rate or RATES
    if min(rates) < 1 or asked.burst < 1 or asked.seconds <= 0 or asked.rounds < 1:
        parser.error("rates, bursts, seconds and rounds are more than 0")
    try:
        before = compare.read(asked.compare) if asked.compare else None
    except compare.NotComparable as error:
        parser.error(str(error))
    described, jitters = machine([]), jitter()
    paces = [
        Pace(rate, asked.seconds, asked.burst, asked.client, asked.stall) for rate in sorted(rates)
    ]
    cases = measure(paces, asked.rounds)
    sys.stdout.write(table(cases, jitters, described) + "\n")
    told = {"machine": described, "jitter_max_ns": jitters.maximum,
            "cases": [each.as_json() for each in cases]}  # fmt: skip
    if asked.json:
        asked.json.write_text(json.dumps(told, indent=1) + "\n")
    if asked.hlog:
        asked.hlog.write_text(log_of(cases, described))
    if asked.html:
        asked.html.write_text(page_of(cases, jitters, described))
    return 1 if before and compare.tell(before, compare.figures_of(told)) else 0


if __name__ == "__main__":
    sys.exit(main())
