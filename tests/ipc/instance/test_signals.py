"""Signals that do not wake the main thread."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

from shmbroker.ipc.instance import ordering, reloading
from tests.support.runs import Run

PATIENCE = 60.0
SENT = (signal.SIGTERM, signal.SIGHUP, ordering.SIGNAL)


def another_thread_gets_them() -> None:
    """As the kernel may decide.  Threads begun later are as the main thread is: they do not."""
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, SENT)


def test_each_is_heard(tmp_path: Path, vhost: str) -> None:
    run = Run(tmp_path / "one", vhost, "live")
    run.before = another_thread_gets_them
    try:
        run.start().becomes("live")
        answer = ordering.asked(run.folder, {"noun": "nothing"}, PATIENCE)
        assert answer is not None, f"{run.said()} {run.errors()}"
        assert reloading.asked(run.folder, PATIENCE) is not None, f"{run.said()} {run.errors()}"
        assert run.stop() == 0
    finally:
        run.kill()
