"""Frames that are flipped, cut, repeated, reordered and enormous, against a running listener.

They are made of real ones: a link ships messages, and what it sends is damaged on its way, at a
random frame of each connection, from the first of the handshake on.  Beside it an honest link ships
to the same listener: all of its messages arrive, once and in order.

python -m tests.crash.frames VHOST PORT FOLDER is the listener: a process that runs with the C of
the library as it is, or compiled with the address sanitizer.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import shmbroker
from shmbroker import Broker, Empty, QueueFull
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.carrier.source import Shipped
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.wire.codec import LENGTH
from shmbroker.netbridge.wire.words import Standing
from shmbroker.perf.machine.port import free_port
from tests.conftest import vhost_for_a_while
from tests.crash.links import Load, body
from tests.support.link import SITE, Pair

ATTACKERS = 12
TIMES = LinkTimes(heartbeat_interval=0.02, heartbeat_misses=50, max_frame_size=128 << 10)
"""Beats come so often that a connection always has a next frame."""
FRAMES_MAX = 40
"""Of a connection, before the damaged one."""
AFTER_MAX = 3
ENORMOUS = (130 << 10, 1 << 20, 8 << 20)
GROWTH_MAX = 48 << 20
"""Of the listener's memory, while the second half of the frames comes."""
HONEST = "honest"
HONEST_BURST = 2
ASAN = "detect_leaks=0:quarantine_size_mb=8:abort_on_error=1"


@dataclass
class Outcome:
    seed: int
    frames: int = 0
    connections: int = 0
    damage: Counter[str] = field(default_factory=Counter)
    growth: int = 0
    messages: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        damage = ", ".join(f"{many:,} {name}" for name, many in sorted(self.damage.items()))
        verdict = "; ".join(self.faults) or "the broker goes on"
        return (
            f"seed {self.seed}: {self.frames:,} frames, {self.connections:,} connections"
            f" ({damage}); {self.messages:,} honest messages;"
            f" the listener grew by {self.growth >> 10:,} KiB: {verdict}"
        )


def flipped(random: Random, part: bytes) -> bytes:
    at = random.randrange(len(part))
    return part[:at] + bytes([part[at] ^ 1 << random.randrange(8)]) + part[at + 1 :]


def cut(random: Random, part: bytes) -> bytes:
    at = random.randrange(len(part))
    return part[:at] + part[random.randrange(at, len(part)) + 1 :]


class Attacker(Link):
    """Of each connection it damages one frame, and ends it a few frames later."""

    def __init__(self, random: Random, outcome: Outcome, *given: Any, **options: Any) -> None:
        self._random, self._outcome = random, outcome
        self._end: End | None = None
        self._until = self._after = 0
        self._held: list[bytes] = []
        super().__init__(*given, **options)

    def send(self, end: End, message: bytes) -> bool:
        if end is not self._end:
            self._end = end
            self._until = self._random.randrange(FRAMES_MAX)
            self._after = self._random.randrange(AFTER_MAX) + 1
            self._held.clear()
            self._outcome.connections += 1
        self._until -= 1
        if self._until == 0:
            goes = self._damaged(message)
        else:
            goes, self._held = [message, *self._held], []
        self._after -= self._until <= 0
        if self._after == 0:
            self._thread.call(end.lost)
        self._outcome.frames += len(goes)
        return all(super(Attacker, self).send(end, each) for each in goes)

    def _damaged(self, message: bytes) -> list[bytes]:
        random = self._random
        kind = random.choice(("flipped", "flipped", "cut", "cut", "repeated", "reordered",
                              "enormous", "longer", "left out"))  # fmt: skip
        self._outcome.damage[kind] += 1
        if kind == "flipped":
            # in half of them the head, which is the smaller part
            head = LENGTH.size + LENGTH.unpack_from(message)[0]
            most = random.choice((head, len(message)))
            for _ in range(random.choice((1, 1, 2, 8))):
                message = flipped(random, message[:most]) + message[most:]
            return [message]
        if kind == "cut":
            return [cut(random, message)]
        if kind == "enormous":
            return [message + bytes(random.choice(ENORMOUS))]
        if kind == "longer":
            return [message + b"more" * random.randrange(1, 9)]
        if kind == "repeated":
            return [message] * random.randrange(2, 5)
        if kind == "reordered":
            self._held.append(message)
        return []


class Listening:
    """The process of the listener, at the vhost's name."""

    def __init__(self, vhost: str, port: int, folder: Path, library: Path | None) -> None:
        self.errors = folder / "listener.errors"
        environment = dict(os.environ)
        if library is not None:
            runtime = subprocess.check_output(["cc", "-print-file-name=libasan.so"], text=True)
            environment |= {"LD_PRELOAD": f"{runtime.strip()} {library}", "ASAN_OPTIONS": ASAN}
        command = [sys.executable, "-m", "tests.crash.frames", vhost, str(port), str(folder)]
        with self.errors.open("w") as errors:
            self._process = subprocess.Popen(command, env=environment, stderr=errors)

    def fault(self) -> str:
        ended = self._process.poll()
        if ended is None:
            return ""
        return f"the listener ended with {ended}: {self.errors.read_text()[-3000:]}"

    def has_library(self, library: Path) -> bool:
        return str(library) in Path(f"/proc/{self._process.pid}/maps").read_text()

    def memory(self) -> int:
        """What it has for itself: the rings belong to all."""
        if self._process.poll() is not None:
            return 0
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("RssAnon"))
        return int(line.split()[1]) << 10

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


BUILD = """
import platform, sys
from pathlib import Path
from shmbroker.ipc.build.library import build
folder = Path(sys.argv[1])
print(build(folder / "made", folder / "work", platform.machine(), "0", str(folder / "cc-asan")))
"""
SOURCES = Path(__file__).parents[2] / "src"


def sanitized(folder: Path) -> Path:
    """The library with its C under the address sanitizer; the kernels are as they are."""
    compiler = folder / "cc-asan"
    compiler.write_text('#!/bin/sh\nexec cc "$@" -fsanitize=address -fno-omit-frame-pointer\n')
    compiler.chmod(0o755)
    # the C is not installed
    command = [sys.executable, "-c", BUILD, str(folder)]
    made = subprocess.check_output(command, env={**os.environ, "PYTHONPATH": str(SOURCES)})
    return Path(made.decode().splitlines()[-1])


class Attack:
    def __init__(self, near: Broker, far: Broker, pair: Pair, outcome: Outcome) -> None:
        self.outcome = outcome
        self._far = far
        self._names = [f"attack-{number}" for number in range(ATTACKERS)]
        self._pair = pair
        self._sources = [near.declare_queue(name, slots=256) for name in self._names]
        self._targets = [far.declare_queue(name, slots=64) for name in self._names]
        self.honest = Load(
            near.declare_queue(HONEST, slots=256), far.declare_queue(HONEST, slots=256)
        )
        self._published = 0

    def links(self, thread: NetworkThread, opened: ExitStack) -> None:
        uri = f"failover:(tcp://{self._pair.address})?"
        uri += "initial-reconnect-delay=1ms&max-reconnect-delay=1ms"
        for number, name in enumerate([*self._names, HONEST]):
            ours = Identity(name.encode().ljust(16), os.urandom(16), name, Standing.LIVE, 0)
            given = (thread, name, uri, SITE, ours, [Shipped(name, name)])
            options: dict[str, Any] = {"times": TIMES, "refused_retry": 0.1}
            if name == HONEST:
                link = Link(*given, **options)
            else:
                random = Random(self.outcome.seed * ATTACKERS + number)
                link = Attacker(random, self.outcome, *given, **options)
            opened.callback(thread.ask, link.end)

    def step(self) -> None:
        self.honest.step(HONEST_BURST)
        for source, target in zip(self._sources, self._targets, strict=True):
            with suppress(QueueFull):
                source.publish(body(self._published), timeout=0)
                self._published += 1
            with suppress(Empty):
                while True:  # whatever it is: who knows the password may publish anything
                    target.receive(timeout=0)


def play(folder: Path, frames: int, seed: int, sanitizes: bool = False) -> Outcome:
    outcome = Outcome(seed)
    library = sanitized(folder) if sanitizes else None
    with ExitStack() as opened:
        names = [opened.enter_context(vhost_for_a_while()) for _ in range(2)]
        near, far = (
            opened.enter_context(shmbroker.connect(f"shm://{name}", create=True, name="test"))
            for name in names
        )
        pair = Pair(*names, free_port(), folder, TIMES)
        attack = Attack(near, far, pair, outcome)
        listening = Listening(names[1], pair.port, folder, library)
        opened.callback(listening.end)
        links = opened.enter_context(ExitStack())
        attack.links(links.enter_context(NetworkThread(near)), links)
        half = 0
        while outcome.frames < frames and not outcome.faults:
            attack.step()
            if fault := listening.fault():
                outcome.faults.append(fault)
            if not half and outcome.frames >= frames // 2:
                half = listening.memory()
        if library is not None and not listening.has_library(library):
            outcome.faults.append("the listener ran without the sanitizer")
        if not outcome.faults and (fault := attack.honest.finish()):
            outcome.faults.append(fault)
        outcome.messages = attack.honest.taken
        outcome.growth = listening.memory() - half
        if outcome.growth > GROWTH_MAX:
            outcome.faults.append("its memory grows")
    return outcome


def listen(vhost: str, port: int, folder: Path) -> None:
    with Pair("", vhost, port, folder, TIMES).listening():
        Event().wait()


if __name__ == "__main__":
    listen(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
