"""python -m shmbroker.perf.micro.sync: a sync under load, and a takeover with what was synced.

    publisher ──► ring ──► journaler ──► disk
    consumer  ◄──┘             │
    backlog ──► ring           └──► files ═══ CURVE, loopback TCP ═══ the replica

Messages of 64 bytes are published at a tenth of the possible rate, a few every 5 ms, and consumed.
What is told is how late they are confirmed, from when they were due: so a stop counts for all that
it holds up.  Meanwhile a replica is synced that has nothing, with a backlog in another queue.  Then
the live is killed, and the replica takes over: from there to the first confirm, with the backlog
and without.  The live has one processor, the replica the other.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from shmbroker import Broker, Queue, connect, vhost
from shmbroker.netbridge.replica.replica import Replica
from shmbroker.perf.machine.machine import machine
from shmbroker.perf.machine.process import Process
from shmbroker.perf.machine.size import format_size, parse_size
from shmbroker.perf.machine.workspace import unique_token
from shmbroker.perf.micro.replica import COUNTS, LEVEL, PATIENCE_S, QUEUE, SLOTS, Pair, rate

BACKLOG = "backlog"
BODY_BYTES = 1024
"""Of the backlog."""
BATCH = 256
TICK_S = 0.005
QUIET_S = 5.0
SHARE = 10
P99_MAX = 3.0
STOP_MAX_S = 0.1
RATE_MIN = 200e6
TAKEOVER_P50_MAX_S, TAKEOVER_MAX_S, TAKEOVER_MORE_MAX = 0.025, 0.06, 1.2
SETTLED_S = 2.0
"""So long a replica is in sync before it takes over."""


# --- a pair ---------------------------------------------------------------------------------------


@contextmanager
def pair(
    folder: Path, replica_folder: Path, backlog: int
) -> Iterator[tuple[Pair, Process, Broker]]:
    """A live with so many bytes of backlog, and a queue."""
    token, arena_bytes = unique_token("sync"), (256 << 20) + 2 * backlog
    with (
        tempfile.TemporaryDirectory(dir=folder) as work,
        tempfile.TemporaryDirectory(dir=replica_folder) as far,
        ExitStack() as stack,  # it ends who writes there, before the folders go
    ):
        vhost.create(token, arena_bytes=arena_bytes)
        stack.callback(vhost.delete, token, force=True)
        stack.callback(remove, f"{token}-replica")
        made = Pair(token, Path(work), Path(far), arena_bytes=arena_bytes)
        live = made.begin()
        stack.callback(live.kill)
        broker = stack.enter_context(connect(f"shm://{token}"))
        broker.declare_queue(QUEUE, durable=True, slots=SLOTS)
        filled(broker, backlog)
        yield made, live, broker


def remove(name: str) -> None:
    if vhost.exists(name):
        vhost.delete(name, force=True)


def filled(broker: Broker, backlog: int) -> None:
    count = backlog // BODY_BYTES
    if count == 0:
        return
    queue = broker.declare_queue(BACKLOG, durable=True, slots=1 << (count - 1).bit_length())
    bodies = [bytes(BODY_BYTES)] * BATCH
    for _ in range(count // BATCH):
        queue.publish_many(bodies, confirm="shm", timeout=PATIENCE_S)
    queue.confirm(timeout=PATIENCE_S)


def await_sync(queue: Queue, replica: Process) -> None:
    ends_at = time.monotonic() + PATIENCE_S
    while queue.level != LEVEL:
        assert time.monotonic() < ends_at, replica.errors.read_text()
        time.sleep(0.001)


# --- a sync under load ----------------------------------------------------------------------------


@dataclass
class Synced:
    before_s: list[float] = field(default_factory=list)
    """How late each batch was confirmed, without a sync."""
    during_s: list[float] = field(default_factory=list)
    a_second: float = 0.0
    """Messages."""
    bytes: int = 0
    seconds: float = 0.0


def paced(queue: Queue, a_second: float, is_over: Callable[[], bool]) -> list[float]:
    batch = [bytes(64)] * max(1, round(a_second * TICK_S))
    late, due = [], perf_counter()
    while not is_over():
        due += TICK_S
        time.sleep(max(0.0, due - perf_counter()))
        queue.publish_many(batch, timeout=PATIENCE_S)
        late.append(perf_counter() - due)
    return late


def consume(token: str) -> int:
    with connect(f"shm://{token}") as broker:
        queue = broker.queue(QUEUE)
        while True:
            queue.receive_many(1024, timeout=PATIENCE_S)


def synced(folder: Path, replica_folder: Path, backlog: int) -> Synced:
    with pair(folder, replica_folder, backlog) as (made, _, broker):
        queue = broker.queue(QUEUE)
        told = Synced(a_second=rate(queue, 64, COUNTS[64]) / SHARE)
        consumer = Process(lambda: consume(made.live), made.folder / "consumer.errors")
        try:
            until = perf_counter() + QUIET_S
            told.before_s = paced(queue, told.a_second, lambda: perf_counter() > until)
            replica = made.follow()
            try:
                told.during_s = paced(queue, told.a_second, lambda: queue.level == LEVEL)
            finally:
                replica.kill()
        finally:
            consumer.kill()
        lines = [json.loads(line) for line in made.lines.read_text().splitlines()]
        done = next(each for each in lines if each["state"] == "in sync")
        told.bytes, told.seconds = done["copied"], done["seconds"]
        return told


# --- a takeover -----------------------------------------------------------------------------------


def taken_over_s(folder: Path, replica_folder: Path, backlog: int) -> float:
    """From the order to the first confirm."""
    with pair(folder, replica_folder, backlog) as (made, live, broker):
        order, answer = made.folder / "order", made.folder / "answer"

        def takes_over(replica: Replica) -> None:
            while not order.exists():
                time.sleep(0.01)
            began = perf_counter()

            def serves(there: Broker) -> None:
                there.queue(QUEUE).publish(b"first", timeout=PATIENCE_S)
                answer.with_suffix(".new").write_text(str(perf_counter() - began))
                answer.with_suffix(".new").rename(answer)

            there, journaler = replica.take_over(2, serves=serves)
            journaler.close()
            there.close()

        replica = made.follow(takes_over)
        try:
            await_sync(broker.queue(QUEUE), replica)
            time.sleep(SETTLED_S)
            live.kill()
            order.touch()
            ends_at = time.monotonic() + PATIENCE_S
            while not answer.exists():
                assert time.monotonic() < ends_at, replica.errors.read_text()
                time.sleep(0.01)
            return float(answer.read_text())
        finally:
            replica.kill()


# --- all ------------------------------------------------------------------------------------------


def at(late: Sequence[float], share: float) -> float:
    return sorted(late)[min(len(late) - 1, int(len(late) * share))]


def told_of_sync(found: Synced) -> tuple[str, bool]:
    before, during, stop = at(found.before_s, 0.99), at(found.during_s, 0.99), max(found.during_s)
    speed = found.bytes / found.seconds
    good = during <= P99_MAX * before and stop <= STOP_MAX_S and speed >= RATE_MIN
    return (
        f"a sync of {found.bytes / 1e6:,.0f} MB in {found.seconds:.1f} s: {speed / 1e6:,.0f} MB/s; "
        f"{found.a_second:,.0f} messages/s beside it, confirmed after p50 "
        f"{at(found.during_s, 0.5) * 1e3:.2f} ms, p99 {during * 1e3:.2f} ms "
        f"({during / before:.2f} x {before * 1e3:.2f} ms without it), at most {stop * 1e3:.1f} ms "
        f"(without it {max(found.before_s) * 1e3:.1f} ms)"
    ), good


def told_of_takeovers(small: Sequence[float], large: Sequence[float]) -> tuple[str, bool]:
    one, other = at(small, 0.5), at(large, 0.5)
    good = (
        one <= TAKEOVER_P50_MAX_S
        and max(small) <= TAKEOVER_MAX_S
        and other <= TAKEOVER_MORE_MAX * one
    )
    return (
        f"a takeover, to the first confirm: p50 {one * 1e3:.1f} ms, at most "
        f"{max(small) * 1e3:.1f} ms; with the backlog {other * 1e3:.1f} ms, at most "
        f"{max(large) * 1e3:.1f} ms: {other / one:.2f} x"
    ), good


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure")
    parser.add_argument("--replica-folder", type=Path, help="of the replica's store; as --folder")
    parser.add_argument("--backlog", type=parse_size, default=1 << 30, help="default 1GiB")
    parser.add_argument("--takeovers", type=int, default=5, help="of each kind; default 5")
    given = parser.parse_args(arguments)
    far = given.replica_folder or given.folder
    described, say, good = machine([]), sys.stdout.write, True
    say(f"{described['cpu']}, Linux {described['kernel']}; stores in {given.folder} and {far}; ")
    say(f"a backlog of {format_size(given.backlog)}\n")
    line, is_good = told_of_sync(synced(given.folder, far, given.backlog))
    say(f"{line}{'' if is_good else '  <- misses its target'}\n")
    good &= is_good
    if given.takeovers:
        small = [taken_over_s(given.folder, far, 0) for _ in range(given.takeovers)]
        large = [taken_over_s(given.folder, far, given.backlog) for _ in range(given.takeovers)]
        line, is_good = told_of_takeovers(small, large)
        say(f"{line}{'' if is_good else '  <- misses its target'}\n")
        good &= is_good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
