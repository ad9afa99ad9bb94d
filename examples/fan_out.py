"""make demo-fan-out: a C producer, and Numba, Python and asyncio consumers on named queues.

                                   ┌─► queue numba    ─► a Numba consumer
    C producer ─► topic exchange ──┼─► queue python   ─► two Python consumers; one of them is killed
                                   │                     (kill -9) and restarted several times
                                   └─► queue asyncio  ─► an asyncio consumer

Each message goes to all three queues.  At the end every message is accounted for by its number.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import tally

import shmbroker
from shmbroker import vhost

HERE = Path(__file__).parent
BINDINGS = {"numba": "demo.*", "python": "demo.#", "asyncio": "*.c"}
KILLS = 5
WAITING = 1000
"""Messages.  A consumer takes 32 at a time: stopped among so many it has some in hand."""
PATIENCE_S = 120


def compiled_producer(folder: Path) -> Path:
    library = Path(shmbroker.__file__).parent / "lib"
    environment = os.environ | {"PKG_CONFIG_PATH": str(library / "pkgconfig")}
    flags = subprocess.check_output(
        ["pkg-config", "--cflags", "--libs", "shmbroker"], env=environment, text=True
    )
    target = folder / "c_producer"
    source = str(HERE / "c_producer.c")
    subprocess.run(["cc", "-O2", source, "-o", str(target), *shlex.split(flags)], check=True)
    return target


class Consumer:
    """One of the example consumers, as a process; what it got outlives it in a tally."""

    def __init__(self, url: str, kind: str, folder: Path, count: int) -> None:
        self.kind = kind
        self._command = [sys.executable, str(HERE / f"{kind}_consumer.py"), url, kind]
        self._folder = folder
        self._count = count
        self.tallies: list[memoryview] = []
        self.start()

    def start(self) -> None:
        """A new process, with a tally of its own."""
        path = self._folder / f"{self.kind}-{id(self)}-{len(self.tallies)}"
        tally.create(path, self._count)
        self.tallies.append(tally.attach(str(path)))
        command = [*self._command, str(path)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"the {self.kind} consumer did not start")

    def stop(self) -> None:
        """It stands still when this returns."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def is_caught_with_messages(
    broker: shmbroker.Broker, victim: Consumer, other: Consumer, producer: subprocess.Popen[str]
) -> bool:
    """Stop both until messages wait for them, then let it take some, and stop it with these."""
    queue = broker.queue(victim.kind)
    victim.stop()
    other.stop()
    is_caught = False
    while producer.poll() is None and not is_caught:
        if len(queue) >= WAITING:
            victim.go_on()
            time.sleep(0.001)
            victim.stop()
            holders = {each.participant for each in queue.holders()}
            pids = {each.pid for each in broker.participants() if each.id in holders}
            is_caught = victim.process.pid in pids
        else:
            time.sleep(0.001)
    other.go_on()
    return is_caught


def kill_now_and_then(
    broker: shmbroker.Broker, victim: Consumer, other: Consumer, producer: subprocess.Popen[str]
) -> int:
    """Kill it with messages in hand and restart it, while messages flow: how often."""
    kills = 0
    while kills < KILLS and is_caught_with_messages(broker, victim, other, producer):
        victim.kill()
        broker.repair()  # anybody who waits for 100 ms does this too
        victim.start()
        victim.wait_until_ready()
        kills += 1
    victim.go_on()
    return kills


def percentile(sorted_ns: list[int], part: float) -> str:
    value_ns = sorted_ns[min(len(sorted_ns) - 1, int(len(sorted_ns) * part))]
    return f"{value_ns / 1000:,.0f} us"


def report(kind: str, tallies: list[memoryview], sent: int) -> int:
    """A line about one kind of client: how many messages it lost."""
    times = Counter[int]()
    took_ns: list[int] = []
    redelivered = 0
    for got in tallies:
        for number, ns in enumerate(got):
            if ns == 0:
                continue
            times[number] += 1
            if ns < 0:
                redelivered += 1
            else:
                took_ns.append(ns)
    took_ns.sort()
    once = sum(1 for each in times.values() if each == 1)
    lost = sent - len(times)
    figures = [percentile(took_ns, part) for part in (0.5, 0.99, 1)] if took_ns else ["-"] * 3
    print(f"{kind:8} {sent:>9,} {once:>14,} {redelivered:>12,} {lost:>6,}", end=" ")
    print(f"{figures[0]:>10} {figures[1]:>10} {figures[2]:>11}")
    return lost


def play(broker: shmbroker.Broker, url: str, folder: Path, count: int) -> bool:
    broker.declare_exchange("demo", "topic")
    for name, pattern in BINDINGS.items():
        broker.declare_queue(name, slots=16384)
        broker.bind("demo", name, pattern)
    producer_program = compiled_producer(folder)
    print("starting; Numba compiles its consumer's loop, about 10 s the first time ...", flush=True)
    kinds = ["numba", "python", "python", "asyncio"]
    consumers = [Consumer(url, kind, folder, count) for kind in kinds]
    victim, other = consumers[1:3]
    processes: list[subprocess.Popen[str]] = []
    try:
        for each in consumers:
            each.wait_until_ready()
        producer = subprocess.Popen(
            [str(producer_program), broker.vhost, "demo", str(count)],
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(producer)
        print(f"a C producer sends {count:,} messages to {len(BINDINGS)} queues ...", flush=True)
        kills = kill_now_and_then(broker, victim, other, producer)
        out, _ = producer.communicate(timeout=PATIENCE_S)
        print(f"C producer: {out.strip()}; a Python consumer was killed {kills} times (kill -9),")
        print("with messages in hand: these went to the other one, flagged as redelivered")
        if producer.returncode != 0:
            return False
        for each in consumers:
            broker.queue(each.kind).publish(b"", timeout=PATIENCE_S)  # the end, once for each
        for each in consumers:
            each.process.wait(PATIENCE_S)
    finally:
        for process in [*processes, *(each.process for each in consumers)]:
            process.kill()
            process.wait()
    print(
        f"\n{'client':8} {'sent':>9} {'received once':>14} {'redelivered':>12} {'lost':>6}", end=""
    )
    print(f" {'p50':>10} {'p99':>10} {'max':>11}")
    lost = 0
    for kind in BINDINGS:
        tallies = [got for each in consumers if each.kind == kind for got in each.tallies]
        lost += report(kind, tallies, count)
    return lost == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=200_000)
    count = parser.parse_args().messages
    name = f"demo-{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            with shmbroker.connect(f"shm://{name}", create=True) as broker:
                nothing_lost = play(broker, f"shm://{name}", Path(folder), count)
        finally:
            if vhost.exists(name):
                vhost.delete(name, force=True)
    print("\nnothing is lost" if nothing_lost else "\nSOMETHING IS LOST")
    return 0 if nothing_lost else 1


if __name__ == "__main__":
    sys.exit(main())
