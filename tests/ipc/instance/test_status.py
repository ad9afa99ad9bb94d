"""What an instance shows of itself, and how others read it."""

from __future__ import annotations

from pathlib import Path

from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.watch import Watch


def test_reading_the_status_wakes_nobody_who_waits_for_it_to_change(tmp_path: Path) -> None:
    """Who waits reads it after each change: if reading were one, waiting would be spinning."""
    shown = status.Sign(tmp_path)
    shown.show(status.Status("passive"))
    watch = Watch(tmp_path / status.RUN)
    try:
        status.read(tmp_path)
        assert not watch.wait(0.2)
    finally:
        watch.close()
        shown.close()
