"""What came of reading the configuration again; its answer stands in run/reload."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.status import RUN
from shmbroker.ipc.instance.watch import Watch
from shmbroker.ipc.instance.whole import read_whole

FILE: Final = "reload"


@dataclass(frozen=True, slots=True)
class Reloaded:
    config: Config
    applied: tuple[str, ...]
    ignored: tuple[str, ...]
    """Keys that need a restart."""


def asked(folder: Path, timeout: float) -> dict[str, Any] | None:
    """The answer of a broker that was sent SIGHUP; None if it does not answer in time."""
    place = folder / RUN / FILE
    before = read_whole(place)
    ends_at = time.monotonic() + timeout
    watch = Watch(folder / RUN)
    try:
        status.signalled(folder, signal.SIGHUP, 0)
        while (answer := read_whole(place)) == before:
            if time.monotonic() >= ends_at:
                return None
            watch.wait(ends_at - time.monotonic())
        return answer
    finally:
        watch.close()
