"""A process of ours that is killed with -9 at a random moment, many times over."""

from __future__ import annotations

import os
import random
import select
from collections.abc import Callable, Iterator
from pathlib import Path

import shmbroker
from shmbroker import Broker
from shmbroker.perf.machine.process import Process

KILLS = int(os.environ.get("SHMBROKER_KILLS", "20"))
"""`make crash` has 200."""
LATEST_SECONDS = 0.02


def victims(
    url: str, folder: Path, work: Callable[[Broker], object], seed: int
) -> Iterator[tuple[int, Process]]:
    """Each time another process, which does this again and again, and is dead when we hear of it.

    It says when it has begun, so that no kill comes before there is anything to kill.
    """
    moments = random.Random(seed)
    for number in range(KILLS):
        begun, say = os.pipe()

        def live(say: int = say) -> int:
            with shmbroker.connect(url, name="victim") as broker:
                work(broker)
                os.write(say, b"!")
                while True:
                    work(broker)

        process = Process(live, folder / "errors")
        os.close(say)
        try:
            assert os.read(begun, 1), process.errors.read_text()
            select.select([], [], [], moments.uniform(0, LATEST_SECONDS))
            process.kill()
            yield number, process
        finally:
            process.kill()
            os.close(begun)
