"""A backup that watches whether the live hangs."""

from __future__ import annotations

import errno
import subprocess
import threading
from typing import Any

import pytest

from shmbroker.ipc.instance import beat, process
from shmbroker.ipc.instance.lock.record import LIVE, Record
from shmbroker.ipc.instance.stall import StallWatch
from tests.support.host import PATIENCE


class Lock:
    """Of a store that once does not answer."""

    def __init__(self, record: Record) -> None:
        self.record, self.asked = record, 0

    def record_if_whole(self) -> Record:
        self.asked += 1
        if self.asked == 1:
            raise OSError(errno.ESTALE, "Stale file handle")
        return self.record


def test_it_goes_on_when_the_store_did_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beat, "age_of", lambda _vhost, _epoch: 60.0)
    killed = threading.Event()
    with subprocess.Popen(["sleep", "60s"]) as hangs:
        pid = hangs.pid
        of = process.Process(pid, process.started(pid), process.boot(), process.namespace())
        lock: Any = Lock(Record(1, LIVE, "live", of))
        watch = StallWatch(lock, "orders", 0.05, lambda _record, _age: killed.set())
        try:
            assert killed.wait(PATIENCE)
            assert hangs.wait(PATIENCE) < 0
        finally:
            hangs.kill()
            watch.end()
    assert lock.asked >= 2
