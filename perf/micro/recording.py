"""python -m shmbroker.perf.micro.recording: what it costs a message that its latency is recorded.

    one thread    publish ──► queue ──► get, ack        or receive, or batches of 32
    ping-pong     client ──► queue ──► server ──► queue ──► client, two processes that spin

In C, 64 bytes; with each message recorded, one in 16, and one in 64.  Runs of a fraction of a
millisecond with and without recording alternate, and what is told is the median of the differences
between neighbours: the moods of the machine meet both alike.  The interval behind it is that of
95 % for the median, from the order of the differences.
"""

from __future__ import annotations

import argparse
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median

from shmbroker import connect, vhost
from shmbroker.perf.machine.child import child
from shmbroker.perf.machine.client import Loops
from shmbroker.perf.machine.pinning import pin
from shmbroker.perf.machine.workspace import unique_token

PAIRS = 2_000
COUNT = 1_024
TRIPS = 256
WARM = 16
SPIN_SECONDS = 1.0
ONE_IN = (1, 16, 64)
WAYS = ("get, ack", "receive", "get_many, ack_many")
QUEUES = ("here", "forth", "back")


@dataclass(frozen=True)
class Cost:
    """Nanoseconds of one message or round trip."""

    what: str
    one_in: int
    without: float
    added: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, what: str, one_in: int, spent: Sequence[int], count: int) -> Cost:
        without = [ns / count for ns in spent[0::2]]
        added = sorted((b - a) / count for a, b in zip(spent[0::2], spent[1::2], strict=True))
        middle, spread = len(added) / 2, 0.98 * sqrt(len(added))
        low, high = max(0, int(middle - spread)), min(len(added) - 1, int(middle + spread))
        return cls(what, one_in, median(without), median(added), added[low], added[high])

    def __str__(self) -> str:
        return (
            f"{self.what:18} 1 in {self.one_in:<2} {self.without:8.1f} ns  {self.added:+6.1f} ns "
            f"({self.lowest:+.1f} to {self.highest:+.1f}), {self.added / self.without:+.1%}"
        )


class Pairs:
    """The loops of native/recording.c."""

    def __init__(self, token: str) -> None:
        self._loops = Loops("recording.c", token, SPIN_SECONDS)

    def serve(self, trips: int) -> None:
        self._loops.run("recording_serve", trips)

    def in_one_thread(self, how: int, one_in: int, pairs: int) -> Cost:
        spent = array("q", bytes(16 * pairs))
        self._loops.run("recording_pairs", how, one_in, pairs, COUNT, spent)
        return Cost.of(WAYS[how], one_in, spent, COUNT)

    def ping_pong(self, one_in: int, pairs: int) -> Cost:
        spent = array("q", bytes(16 * pairs))
        self._loops.run("recording_ping_pong", one_in, pairs, TRIPS, spent)
        return Cost.of("ping-pong", one_in, spent, TRIPS)


def measure(pairs: int) -> list[Cost]:
    token = unique_token("recording")
    with connect(f"shm://{token}", create=True) as broker:
        for name in QUEUES:
            broker.declare_queue(name, slots=64)

    def serve() -> None:
        pin(1)
        Pairs(token).serve(len(ONE_IN) * 2 * pairs * (TRIPS + WARM))

    try:
        with child(serve):
            pin(0)
            both = Pairs(token)
            costs = [both.ping_pong(each, pairs) for each in ONE_IN]
        return costs + [
            both.in_one_thread(way, each, pairs) for way in range(len(WAYS)) for each in ONE_IN
        ]
    finally:
        vhost.delete(token, force=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m shmbroker.perf.micro.recording", description="What recording latency costs."
    )
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"default {PAIRS}")
    for cost in measure(parser.parse_args(arguments).pairs):
        sys.stdout.write(f"{cost}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
