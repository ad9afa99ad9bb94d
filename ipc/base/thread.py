"""Threads that may find no room."""

from __future__ import annotations

from threading import Thread

from shmbroker.ipc.base.errors import SystemRefused


def start(thread: Thread) -> None:
    """SystemRefused if there may be no more of them."""
    try:
        thread.start()
    except RuntimeError:
        raise SystemRefused(
            "no thread can be begun: raise the limit of processes (ulimit -u; TasksMax= in a "
            "unit), or of memory"
        ) from None
