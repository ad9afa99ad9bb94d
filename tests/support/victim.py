"""A process that works with a queue until it is killed with -9, at a random moment."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from struct import Struct

import shmbroker
from shmbroker import Broker
from shmbroker.perf.machine.process import Process

LIFE_MS_MAX = 4
WORK_MAX = 64
WORK_SECONDS = 0.1
NUMBER = Struct("<q")

Confirm = Callable[[int], None]
Work = Callable[[Broker, Confirm], None]


class Victim:
    """It tells of each number that is done; what it had told before it died is true."""

    def __init__(self, vhost: str, work: Work, errors: Path) -> None:
        self._read, write = os.pipe()

        def live() -> int:
            with shmbroker.connect(f"shm://{vhost}", name="victim") as broker:
                os.write(write, NUMBER.pack(-1))
                work(broker, lambda number: os.write(write, NUMBER.pack(number)) and None)
            return 0

        self._process = Process(live, errors)
        os.close(write)
        assert os.read(self._read, NUMBER.size) == NUMBER.pack(-1), errors.read_text()
        self._told = b""

    def works(self, count: int) -> None:
        """Until it has done so much, or for a while: it may have nothing to do any more."""
        ends_at = time.monotonic() + WORK_SECONDS
        while len(self._told) < count * NUMBER.size:
            left = max(0.0, ends_at - time.monotonic())
            if not select.select([self._read], [], [], left)[0]:
                return
            if not (more := os.read(self._read, 1 << 16)):
                return
            self._told += more

    def kill(self) -> list[int]:
        """What it had confirmed."""
        status = self._process.kill()
        assert status in (-9, 0), self._process.errors.read_text()
        told = self._told
        while more := os.read(self._read, 1 << 16):
            told += more
        os.close(self._read)
        return [number for (number,) in NUMBER.iter_unpack(told)]


@contextmanager
def dying(vhost: str, work: Work, folder: Path, random: Random) -> Iterator[list[int]]:
    """In the block it is at work; afterwards it is dead, and the list has what it confirmed."""
    victim = Victim(vhost, work, folder / "victim.errors")
    confirmed: list[int] = []
    dies_at = time.monotonic() + random.random() * LIFE_MS_MAX / 1e3
    try:
        yield confirmed
        if random.random() < 0.5:  # on a busy machine it may do nothing in a few milliseconds
            victim.works(random.randrange(WORK_MAX))
        else:
            time.sleep(max(0.0, dies_at - time.monotonic()))  # the moment is to be a random one
    finally:
        confirmed += victim.kill()
