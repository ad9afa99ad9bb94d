"""make demo: a live broker is killed, its backup takes over, the live comes back and fails back.

    durable_producer.py ──┐                          ┌──► durable_consumer.py
                          ├──► durable queue orders ─┤
    durable_producer (C) ─┘            │             └──► durable_consumer.py
                               journal, on disk
                               live ◄──────► backup

Producers wait for the disk with each message, so their times show what a program sees of it.  At
the end every confirmed message is accounted for by its number.
"""

from __future__ import annotations

import argparse
import os
import shlex
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import picture

import shmbroker
from shmbroker import vhost

HERE = Path(__file__).parent
COMMAND = str(Path(sys.executable).parent / "shmbroker")
QUEUE = "orders"
PATIENCE_S = 60
RECORD = struct.Struct("3q")


def compiled(folder: Path) -> str:
    library = Path(shmbroker.__file__).parent / "lib"
    environment = os.environ | {"PKG_CONFIG_PATH": str(library / "pkgconfig")}
    flags = subprocess.check_output(
        ["pkg-config", "--cflags", "--libs", "shmbroker"], env=environment, text=True
    )
    source, target = str(HERE / "durable_producer.c"), str(folder / "durable_producer")
    subprocess.run(["cc", "-O2", source, "-o", target, *shlex.split(flags)], check=True)
    return target


class Story:
    """Who plays in it, and what happened when."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.vhost, self.url = folder, name, f"shm://{name}"
        self.begun = time.monotonic()
        self.told: dict[str, float] = {}
        self.processes: list[subprocess.Popen[str]] = []
        self.brokers: dict[str, subprocess.Popen[str]] = {}

    def tell(self, text: str, mark: str = "") -> None:
        at = time.monotonic() - self.begun
        print(f"{at:7.3f} s  {mark or ' '}  {text}", flush=True)
        if mark:
            self.told[mark] = at

    def do(self, *words: str) -> str:
        done = subprocess.run(
            [COMMAND, *words], cwd=self.folder, capture_output=True, text=True, check=False,
            env=os.environ | {"XDG_CONFIG_HOME": str(self.folder)},  # not your contexts
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"shmbroker {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def create(self, name: str, role: str) -> None:
        self.do("create", name, "--vhost", self.vhost, "--store", "store", "--role", role)

    def run(self, name: str) -> None:
        self.brokers[name] = self._started([COMMAND, "run", name])

    def await_state(self, name: str, state: str) -> None:
        self.do("status", name, "--wait", state, "--timeout", f"{PATIENCE_S}s")

    def play(self, *command: str) -> subprocess.Popen[str]:
        """A producer or consumer that has told us that it is ready."""
        made = self._started(list(command))
        assert made.stdout is not None
        if made.stdout.readline() != "ready\n":
            raise RuntimeError(f"{command[0]} did not start")
        return made

    def _started(self, command: list[str]) -> subprocess.Popen[str]:
        made = subprocess.Popen(
            command, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.processes.append(made)
        return made

    def end(self) -> None:
        for each in self.processes:
            each.kill()
            each.communicate()


@contextmanager
def story() -> Iterator[Story]:
    name = f"demo-{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder:
        made = Story(Path(folder), name)
        try:
            yield made
        finally:
            made.end()
            if vhost.exists(name):
                vhost.delete(name, force=True)


def records(path: Path) -> list[tuple[int, int, int]]:
    return list(RECORD.iter_unpack(path.read_bytes()))


def pause_after(told: float, confirms: list[tuple[float, int]]) -> float:
    """Milliseconds: the longest that somebody waited for a confirm that came in the second after
    this, or was the first one behind it."""
    after = [each for each in confirms if each[0] >= told]
    count = sum(at <= told + 1 for at, _ in after)
    return max(ns for _, ns in after[: count + 1]) / 1e6


def perform(play: Story, seconds: float) -> bool:
    play.create("live", "live")
    play.create("backup", "backup")
    program = compiled(play.folder)
    logs = [play.folder / f"log-{index}" for index in range(4)]
    play.begun = time.monotonic()
    play.run("live")
    play.await_state("live", "live")
    play.tell("the live is live")
    play.run("backup")
    play.await_state("backup", "passive")
    play.tell("the backup is passive: it waits for the lock of the store")
    with shmbroker.connect(play.url) as broker:
        broker.declare_queue(QUEUE, durable=True)
        python = [sys.executable, str(HERE / "durable_consumer.py"), play.url, QUEUE]
        consumers = [play.play(*python, str(log)) for log in logs[2:]]
        script = str(HERE / "durable_producer.py")
        producers = [
            play.play(sys.executable, script, play.url, QUEUE, "0", str(logs[0])),
            play.play(program, play.vhost, QUEUE, "1", str(logs[1])),
        ]
        play.tell("two producers (Python, C) publish and wait for the disk; two consumers take")
        time.sleep(seconds)
        play.tell("kill -9 of the live", "K")
        play.do("kill", "live")
        play.await_state("backup", "live")
        play.tell("the backup is live", "B")
        time.sleep(seconds)
        play.tell("the old live is started again, and asks for its role", "R")
        play.run("live")
        play.await_state("live", "live")
        play.tell("the live is live again", "L")
        play.await_state("backup", "passive")
        play.tell("the backup is passive again")
        time.sleep(seconds)
        for each in producers:
            each.communicate(timeout=PATIENCE_S)
        for _ in consumers:
            broker.queue(QUEUE).publish(b"", timeout=PATIENCE_S)
        for each in consumers:
            each.communicate(timeout=PATIENCE_S)
        play.tell("producers and consumers have ended")
        for name in ("backup", "live"):
            play.do("stop", name)
            play.brokers[name].communicate(timeout=PATIENCE_S)
        play.tell("both are stopped")
    return account(play, [records(log) for log in logs])


def account(play: Story, logs: list[list[tuple[int, int, int]]]) -> bool:
    confirmed = {(who, number) for who in (0, 1) for number, _, _ in logs[who]}
    times = Counter((who, number) for log in logs[2:] for who, number, _ in log)
    confirms = sorted((at / 1e9 - play.begun, ns) for log in logs[:2] for _, at, ns in log)
    took = sorted(ns for _, ns in confirms)
    lost = len(confirmed - times.keys())
    twice = sum(1 for each in times.values() if each > 1)
    print(f"\nconfirmed {len(confirmed):,}   lost {lost}   duplicated {twice}")
    for mark, what in (("K", "kill -9"), ("R", "failing back")):
        longest = pause_after(play.told[mark], confirms)
        print(f"{what}: the longest that a producer waited for a confirm was {longest:.1f} ms")
    ladder = ", ".join(
        f"{name} {took[min(len(took) - 1, int(len(took) * part))] / 1e3:,.0f} us"
        for name, part in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1))
    )
    print(f"publish until it is on disk: {ladder}\n")
    print("          median █ and worst ░ of each moment")
    for line in picture.draw(confirms, play.told, confirms[-1][0] + 0.1):
        print(line)
    print("          K killed, B the backup is live, R the live is back, L it is live")
    return lost == 0 and twice == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3, help="between two events; default 3")
    seconds = parser.parse_args().seconds
    with story() as play:
        well = perform(play, seconds)
    print("\nnothing is lost" if well else "\nSOMETHING IS LOST OR DUPLICATED")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
