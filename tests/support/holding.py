"""Somebody who has taken messages, and can be killed with them in hand."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import shmbroker
from shmbroker.perf.machine.process import Process


@contextmanager
def holding(url: str, names: list[str], folder: Path) -> Iterator[Process]:
    """A process with a message of each of these queues."""
    has, say = os.pipe()

    def hold() -> int:
        with shmbroker.connect(url, name="holder") as broker:
            kept = [broker.queue(name).get(timeout=0) for name in names]
            os.write(say, b"%d" % len(kept))
            signal.pause()
        return 0

    errors = folder / f"errors of {'-'.join(names)}"
    process = Process(hold, errors)
    os.close(say)
    try:
        assert os.read(has, 1), errors.read_text()
        yield process
    finally:
        process.kill()
        os.close(has)
