"""Killing a live that hangs: by a backup on the same host, as the stall limit allows.

The kernel tells nobody that a process is stopped, or waits for a disk for ever.  So the backup
looks at the beat of its journaler when that would be too old, and not before.  A backup that has
been late itself looks once more: then the whole machine was stopped, and the live may be fine.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.instance import beat
from shmbroker.ipc.instance.lock.live_lock import LiveLock
from shmbroker.ipc.instance.lock.record import HANDED_OVER, LIVE, Record
from shmbroker.ipc.instance.readable import is_readable


class StallWatch:
    def __init__(
        self, lock: LiveLock, vhost: str, limit: float, told: Callable[[Record, float], object]
    ) -> None:
        self._lock = lock
        self._vhost = vhost
        self._limit = limit
        self._told = told
        self._ended = threading.Event()
        threading.Thread(target=self._watch, name="stall", daemon=True).start()

    def end(self) -> None:
        self._ended.set()

    def _watch(self) -> None:
        delay = 0.0
        while True:
            due = time.monotonic() + delay
            if self._ended.wait(delay):
                return
            was_late = time.monotonic() - due > self._limit / 2
            delay = self._limit
            with suppress(Error, OSError):  # a store that does not answer may answer the next time
                delay = self._limit if was_late else self._look()

    def _look(self) -> float:
        """Kill it if it hangs; when to look again."""
        record = self._lock.record_if_whole()
        # who hands over says so before it has written all; its beat ends when it has
        is_at_work = record is not None and record.state in (LIVE, HANDED_OVER)
        if record is None or not is_at_work or record.process is None:
            return self._limit
        age = beat.age_of(self._vhost, record.epoch)
        if age is None:  # on another host, or not yet at work
            return self._limit
        if age < self._limit:
            return self._limit - age
        self._kill(record, age)
        return self._limit

    def _kill(self, record: Record, age: float) -> None:
        assert record.process is not None
        file = record.process.descriptor()
        if file is None:
            return
        try:
            if self._ended.is_set():
                return
            signal.pidfd_send_signal(file, signal.SIGKILL)
            self._told(record, age)
            is_readable(file)
        finally:
            os.close(file)
