"""Processes that are stopped: all their threads stand still, and do nothing more meanwhile."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 60.0


def stop(pid: int) -> None:
    """Until one of its threads has its turn to take SIGSTOP, the others go on."""
    os.kill(pid, signal.SIGSTOP)
    until = time.monotonic() + PATIENCE
    while not _stands_still(pid):
        assert time.monotonic() < until
        time.sleep(0.001)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    stop(pid)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _stands_still(pid: int) -> bool:
    states = [
        each.read_text().rpartition(")")[2].split()[0]
        for each in Path(f"/proc/{pid}/task").glob("*/stat")
    ]
    return all(each in "TtZX" for each in states)
