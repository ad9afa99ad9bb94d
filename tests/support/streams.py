"""Streams that a queue knows, as the sink sees them when it needs room."""

from __future__ import annotations

import time

from shmbroker import Queue
from shmbroker.ipc._native import lib


def forget_streams(queue: Queue) -> int:
    """Those that nobody has poured for as long as they are kept: how many entries are free."""
    port = queue.port()
    assert lib.sb_port_true_tail(port._port) >= 0
    entries: int = lib.sb_port_origins_forget(port._port, time.time_ns())
    port.close()
    return entries
