"""python -m shmbroker.perf.micro.replica: what a replica costs who waits for confirms.

    program ──► ring ──► journaler ──► disk
                             └──► frames ═══ CURVE, loopback TCP ═══ the replica
    bare                 DEALER ═══ CURVE, loopback TCP ═══ ROUTER

With `--delay` both go over a wire that is so long each way.

One message outstanding: how long a confirm takes at `disk` without a replica, at `disk+replicated`
with one, and a round trip of the bare carrier.  Many outstanding: messages a second of both, and
how many frames of the bare carrier have as many bytes.  Rounds of all kinds are interleaved, each
runs alone, ratios are of the medians.  The broker has one processor and the replica the other.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

from shmbroker import Queue, connect, vhost
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.replica.live import Replication
from shmbroker.netbridge.replica.replica import Replica
from shmbroker.netbridge.security.credential import Credential, Credentials
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import Role, Standing
from shmbroker.perf.machine.delay import relay
from shmbroker.perf.machine.machine import machine
from shmbroker.perf.machine.pinning import pin
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.process import Process
from shmbroker.perf.machine.workspace import unique_token
from shmbroker.perf.micro.link import FRAME_BYTES, Bare, trip_s

QUEUE = "orders"
NODE = bytes(range(16))
SLOTS = 1 << 17
ARENA_BYTES = 1 << 30
BATCH = 256
SINGLES = 200
COUNTS = {64: 1 << 18, 1024: 1 << 16}
"""By the size of the bodies: so many are published in a round."""
RECORD_BYTES = 64
"""Of the journal, around a body: so much more is on the wire."""
PATIENCE_S = 60
CONFIRM_MAX = 1.6
RATE_MIN = 0.4
LONG_RATE_MIN = 0.6
"""Of the bare carrier's, over a long wire."""
LONG_TIMES = 4
"""So many more messages, so that the first round trip counts little."""
LEVEL: Final = "disk+replicated"


def credential() -> Credential:
    return Credential("bench", "bench", (Role.REPLICA,), (Stretched("bench", "bench bench bench"),))


@dataclass
class Pair:
    """A live in a process of its own, and now and then a replica in another one."""

    live: str
    folder: Path
    replica_folder: Path
    port: int = field(default_factory=free_port)
    reached_at: int = 0
    """The port that replicas connect to; 0: the live's own."""
    credential: Credential = field(default_factory=credential)
    arena_bytes: int = ARENA_BYTES

    def _identity(self, name: str, standing: Standing) -> Identity:
        return Identity(NODE, os.urandom(16), name, standing, 1)

    def _lead(self) -> int:
        pin(0)
        journal = self.folder / "journal"
        journal.mkdir()
        with (
            connect(f"shm://{self.live}", name="live") as broker,
            Journaler(journal, node=NODE) as journaler,
            NetworkThread() as thread,
        ):
            journaler.start(broker, 1)
            with (
                Replication(thread, journaler, journal, tell=self._note) as replication,
                Listener(
                    thread, f"tcp://127.0.0.1:{self.port}", self.credential.keys[0],
                    Credentials([self.credential]), self._identity("live", Standing.LIVE),
                    roles=frozenset({Role.REPLICA}), replicates=replication,
                ),
            ):  # fmt: skip
                threading.Event().wait()
        return 0

    def _note(self, line: Mapping[str, Any]) -> None:
        with self.lines.open("a") as file:
            file.write(json.dumps(line) + "\n")

    @property
    def lines(self) -> Path:
        """What the live tells of its replicas."""
        return self.folder / "live.lines"

    def _follow(self, goes_on: Callable[[Replica], None] = lambda _: None) -> int:
        pin(1)
        port = self.reached_at or self.port
        uri = f"failover:(tcp://127.0.0.1:{port})?max-reconnect-delay=50ms"
        with (
            tempfile.TemporaryDirectory(dir=self.replica_folder) as store,
            NetworkThread() as thread,
            Replica(
                thread, Path(store), f"{self.live}-replica", uri, self.credential,
                self._identity("replica", Standing.BACKUP), arena_bytes=self.arena_bytes,
            ) as replica,
        ):  # fmt: skip
            goes_on(replica)
            threading.Event().wait()
        return 0

    def begin(self) -> Process:
        return Process(self._lead, self.folder / "live.errors")

    def follow(self, goes_on: Callable[[Replica], None] = lambda _: None) -> Process:
        """A replica; when it is made, it goes on so."""
        return Process(lambda: self._follow(goes_on), self.folder / "replica.errors")

    @contextmanager
    def replicated(self, queue: Queue) -> Iterator[Process]:
        process = self.follow()
        try:
            ends_at = time.monotonic() + PATIENCE_S
            while queue.level != LEVEL:
                assert time.monotonic() < ends_at, process.errors.read_text()
                time.sleep(0.001)
            queue.publish(b"", confirm=LEVEL, timeout=PATIENCE_S)
            yield process
        finally:
            process.kill()
            vhost.delete(f"{self.live}-replica", force=True)
            while queue.level == LEVEL:
                time.sleep(0.001)


def cpu_s(process: Process) -> float:
    """Processor time so far."""
    text = Path(f"/proc/{process.pid}/stat").read_text()
    user, system = text.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def emptied(queue: Queue) -> None:
    while len(queue):
        queue.receive_many(4 * BATCH, timeout=PATIENCE_S)


def rate(queue: Queue, size: int, count: int) -> float:
    """Messages a second, all of them confirmed at the queue's level."""
    bodies = [[bytes(size)] * BATCH for _ in range(count // BATCH)]
    count = len(bodies) * BATCH
    emptied(queue)
    drain = threading.Thread(target=lambda: drained(queue, count))
    drain.start()
    began = perf_counter()
    for batch in bodies:
        queue.publish_many(batch, confirm="shm", timeout=PATIENCE_S)
    queue.confirm(timeout=PATIENCE_S)
    spent = perf_counter() - began
    drain.join()
    return count / spent


def drained(queue: Queue, count: int) -> None:
    while count:
        count -= len(queue.receive_many(4 * BATCH, timeout=PATIENCE_S))


@dataclass
class Figures:
    disk_s: list[float] = field(default_factory=list)
    both_s: list[float] = field(default_factory=list)
    trip_s: list[float] = field(default_factory=list)
    alone: dict[int, list[float]] = field(default_factory=lambda: {each: [] for each in COUNTS})
    replicated: dict[int, list[float]] = field(
        default_factory=lambda: {each: [] for each in COUNTS}
    )
    bare: list[float] = field(default_factory=list)
    cpu: dict[int, list[tuple[float, float]]] = field(
        default_factory=lambda: {each: [] for each in COUNTS}
    )
    """Of the live and of the replica, seconds a message."""


def _publish(queue: Queue) -> None:
    queue.publish(bytes(64), timeout=PATIENCE_S)


def measured(
    pair: Pair, live: Process, queue: Queue, bare: Bare, into: Figures, share: int = 1
) -> None:
    """One round of all kinds, of so small a share of the messages."""
    times = LONG_TIMES if pair.reached_at else 1
    counts = {size: times * count // share for size, count in COUNTS.items()}

    def confirm() -> float:
        """At the effective level."""
        emptied(queue)
        return trip_s(lambda: _publish(queue), SINGLES // share)

    into.trip_s.append(trip_s(bare.trip, SINGLES // share))
    into.bare.append(bare.stream())
    into.disk_s.append(confirm())
    for size, count in counts.items():
        into.alone[size].append(rate(queue, size, count))
    with pair.replicated(queue) as replica:
        into.both_s.append(confirm())
        for size, count in counts.items():
            before = cpu_s(live), cpu_s(replica)
            into.replicated[size].append(rate(queue, size, count))
            after = cpu_s(live), cpu_s(replica)
            into.cpu[size].append(((after[0] - before[0]) / count, (after[1] - before[1]) / count))


def told(figures: Figures, delay: float) -> tuple[str, bool]:
    disk, both, trip = (median(each) for each in (figures.disk_s, figures.both_s, figures.trip_s))
    cost = both / max(disk, trip)
    lines = [
        f"a confirm, one outstanding: disk {disk * 1e6:,.0f} us, bare round trip "
        f"{trip * 1e6:,.0f} us, {LEVEL} {both * 1e6:,.0f} us: {cost:.2f} x the slower"
    ]
    good = cost <= CONFIRM_MAX
    rate_min = LONG_RATE_MIN if delay else RATE_MIN
    for size in COUNTS:
        alone, replicated = median(figures.alone[size]), median(figures.replicated[size])
        carrier = median(figures.bare) / (size + RECORD_BYTES)
        kept = replicated / min(alone, carrier)
        live, replica = (median(each[side] for each in figures.cpu[size]) * 1e6 for side in (0, 1))
        lines.append(
            f"{size:>5} B, many outstanding: alone {alone:,.0f}/s, bare carrier {carrier:,.0f}/s, "
            f"replicated {replicated:,.0f}/s: {kept:.2f} x the slower; processor time a message "
            f"{live:.2f} us at the live, {replica:.2f} us at the replica"
        )
        good &= kept >= rate_min
    return "\n".join(lines), good


def serve(bare: Bare) -> int:
    bare.serve()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure")
    parser.add_argument("--replica-folder", type=Path, help="of the replica's store; as --folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--share", type=int, default=1, help="of the messages: one in so many")
    parser.add_argument("--delay", type=float, default=0.0, help="each way, in ms")
    given = parser.parse_args(arguments)
    delay = given.delay / 1000
    token, figures, say = unique_token("replica"), Figures(), sys.stdout.write
    described = machine([])
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=given.folder)))
        far = stack.enter_context(
            tempfile.TemporaryDirectory(dir=given.replica_folder or given.folder)
        )
        vhost.create(token, arena_bytes=ARENA_BYTES)
        stack.callback(vhost.delete, token, force=True)
        pair = Pair(token, work, Path(far))
        live = pair.begin()
        stack.callback(live.kill)
        bare = Bare()
        stack.callback(Process(lambda: serve(bare), work / "bare.errors").kill)
        if delay:
            for end in (pair, bare):
                end.reached_at = free_port()
                work_of = partial(relay, end.reached_at, end.port, delay)
                stack.callback(Process(work_of, work / "wire.errors").kill)
        bare.begin()
        stack.callback(bare.end)
        broker = stack.enter_context(connect(f"shm://{token}"))
        queue = broker.declare_queue(QUEUE, durable=True, slots=SLOTS)
        say(f"{described['cpu']}, Linux {described['kernel']}; stores in {given.folder} and ")
        say(f"{given.replica_folder or given.folder}; bare frames of {FRAME_BYTES >> 10} KiB\n")
        for _ in range(given.rounds):
            measured(pair, live, queue, bare, figures, given.share)
    text, good = told(figures, delay)
    say(f"{text}{'' if good else '  <- misses its target'}\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
