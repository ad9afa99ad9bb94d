"""python -m shmbroker.perf.micro.queue_replica: a queue that follows one of another broker.

    program ──► original, in memory ═══ CURVE, loopback TCP ═══ its replica, in memory
    program ──► stream ═══════════════════ loopback TCP ═══════ its replica         (Redis)

How many messages of 64 bytes a second a replica follows, until all that was published is there; and
at half that rate how long after its publish a message is there.  Both are measured with Redis,
too, if it is installed: a stream, and a Redis that replicates it.  Then what a replica whose broker
is stopped costs the original, against none, in pairs; and how many bytes come when a replica with a
million messages was away for a thousand changes.  Processes go where the kernel puts them.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from shmbroker import Queue, vhost
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.whole import read_whole
from shmbroker.perf.machine.machine import machine
from shmbroker.perf.machine.program import Program
from shmbroker.perf.micro.followed import BODY, Followed, lag, rate, waited_for
from shmbroker.perf.micro.instance import PATIENCE_S, Instance
from shmbroker.perf.micro.redis_replica import replicated

QUEUE: Final = "orders"
PASSWORD: Final = "correct horse battery staple"
ARENA: Final = "1GiB"
SLOTS: Final = 1 << 21
BATCH: Final = 1024
COUNT: Final = 1 << 19
"""Messages of a round."""
LAG_S: Final = 5.0
PAIRS: Final = 20
WORK: Final = 1 << 17
"""Messages of one half of a pair, published and consumed: more bytes than may be on the way."""
FILLED: Final = 1_000_000
DIFFERENCE: Final = 1_000
RATE_MIN: Final = 1_500_000
LAG_P99_MAX_S: Final = 0.005


class Copying(Instance):
    """One whose queues are followed, or follow."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name, instance__arena=ARENA, ha__queue_replication=True)
        self.create(
            {
                "credentials.copies.password": PASSWORD,
                "credentials.copies.role": "replica",
                "acceptors.copies.uri": f"tcp://127.0.0.1:{self.port}",
                "acceptors.copies.roles": ["replica"],
            }
        )

    def row(self) -> Mapping[str, Any]:
        """Of its replica, as `ha replicas` shows it."""
        self.order("replicas", "show")
        rows = read_whole(self.folder / status.RUN / "replicas").get("replicas", [])
        return rows[0] if rows else {"state": "none"}


class Pair(Followed):
    """An original and its replica, and the brokers of both."""

    name = "a queue replica"

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        self.near, self.far = Copying(folder, "original"), Copying(folder, "replica")
        for each in (self.near, self.far):
            opened.callback(vhost.delete, each.vhost, force=True)
        opened.enter_context(self.near.runs())
        self._there = opened.enter_context(self.near.connected())
        self.original = self._there.declare_queue(QUEUE, slots=SLOTS)

    @contextmanager
    def followed(self) -> Iterator[Program]:
        """The broker of the replica runs, and it follows."""
        with self.far.runs() as program, self.far.connected() as here:
            if all(each.name != QUEUE for each in here.queues()):
                here.declare_queue(QUEUE, slots=SLOTS)
            self.follow()
            self.copy: Queue = here.queue(QUEUE)
            yield program

    def follow(self) -> None:
        self.far.order("replicas", "follow", queue=QUEUE, of=f"127.0.0.1:{self.near.port}")
        waited_for(lambda: self.far.row()["state"] == "following", PATIENCE_S)

    def publish(self, count: int) -> None:
        for at in range(0, count, BATCH):
            self.original.publish_many([BODY] * min(BATCH, count - at))

    def drain(self, count: int) -> None:
        while count:
            count -= len(self.original.receive_many(min(count, 4 * BATCH), timeout=PATIENCE_S))

    @property
    def published(self) -> int:
        return self.original.published

    @property
    def arrived(self) -> int:
        return self.copy.published


def work_s(pair: Pair, count: int) -> float:
    """What it takes to publish so many, and to consume them."""
    began = perf_counter()
    for at in range(0, count, BATCH):
        many = min(BATCH, count - at)
        pair.original.publish_many([BODY] * many)
        pair.drain(many)
    return perf_counter() - began


def stopped_s(pair: Pair, program: Program, count: int) -> float:
    """While the broker of its replica is stopped, and as much is on the way as may be; then nothing
    follows any more."""
    pair.follow()
    os.kill(program.pid, signal.SIGSTOP)
    try:
        work_s(pair, count)
        spent = work_s(pair, count)
    finally:
        os.kill(program.pid, signal.SIGCONT)
    pair.far.order("replicas", "detach", queue=QUEUE)
    return spent


def cost(pair: Pair, pairs: int, count: int) -> list[float]:
    """Of a replica that is stopped, by the time without one, of each pair."""
    found = []
    with pair.followed() as program:
        pair.far.order("replicas", "detach", queue=QUEUE)
        work_s(pair, count)
        for number in range(pairs):
            if number % 2:
                without, stopped = work_s(pair, count), stopped_s(pair, program, count)
            else:
                stopped, without = stopped_s(pair, program, count), work_s(pair, count)
            found.append(stopped / without)
    return found


def difference(pair: Pair, filled: int, changed: int) -> tuple[int, int, float]:
    """Bytes that came for all of it, then for the changes alone, and how long these took."""
    with pair.followed():
        pair.publish(filled)
        waited_for(lambda: pair.arrived == pair.published, PATIENCE_S)
        whole = int(pair.far.row()["link-bytes"])
    pair.publish(changed // 2)
    pair.drain(changed // 2)
    began = perf_counter()
    with pair.followed():
        waited_for(lambda: len(pair.copy) == len(pair.original), PATIENCE_S)
        spent = perf_counter() - began
        return whole, int(pair.far.row()["link-bytes"]), spent


def measured(each: Followed, count: int, rounds: int, seconds: float) -> tuple[float, float]:
    """The rate, and the 99th percentile of the lag; both are told."""
    rates = [rate(each, count) for _ in range(rounds)]
    many = statistics.median(rates)
    lags = lag(each, many / 2, seconds)
    p50, p99 = (statistics.quantiles(lags, n=100)[at] for at in (49, 98))
    sys.stdout.write(
        f"{each.name}: {many / 1e6:.2f} million/s of {len(BODY)} B ({min(rates) / 1e6:.2f} to "
        f"{max(rates) / 1e6:.2f}); at {many / 2e6:.2f} million/s it is there after "
        f"{p50 * 1e3:.2f} ms in the median, p99 {p99 * 1e3:.2f} ms\n"
    )
    return many, p99


def told_cost(ratios: Sequence[float]) -> bool:
    """Whether it is within what pairs differ by."""
    middle = statistics.fmean(ratios)
    noise = 2 * statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else 0.0
    sys.stdout.write(
        f"the original with a replica that is stopped: {middle:.3f} times as long as without one, "
        f"+- {noise:.3f} ({len(ratios)} pairs, {min(ratios):.2f} to {max(ratios):.2f})\n"
    )
    return middle - noise <= 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--share", type=int, default=1, help="of the messages: one in so many")
    given = parser.parse_args(arguments)
    described, share = machine([]), given.share
    sys.stdout.write(f"{described['cpu']}, Linux {described['kernel']}\n")
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="queue-replica-")))
        pair = Pair(folder, opened)
        with pair.followed():
            many, p99 = measured(pair, COUNT // share, given.rounds, LAG_S / share)
        good = many >= RATE_MIN and p99 <= LAG_P99_MAX_S
        with replicated(folder) as redis:
            if redis is None:
                sys.stdout.write("Redis is not installed\n")
            else:
                measured(redis, COUNT // share, given.rounds, LAG_S / share)
        good &= told_cost(cost(pair, given.pairs, WORK // share))
        filled, changed = FILLED // share, DIFFERENCE // share
        whole, less, spent = difference(pair, filled, changed)
        sys.stdout.write(
            f"{filled:,} messages came with {whole:,} bytes; after it was away for {changed:,} "
            f"changes {less:,} came, and it was equal {spent:.2f} s after its broker was started\n"
        )
    sys.stdout.write("" if good else "<- misses its target\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
