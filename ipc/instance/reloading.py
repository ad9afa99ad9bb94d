"""What came of reading the configuration again; its answer stands in run/reload."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.log import Log
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


def again(
    reload: Callable[[Config], Reloaded], config: Config, log: Log, answer: dict[str, object]
) -> Config:
    """The configuration from now on; what came of it is added to the answer.

    An error in the configuration changes nothing.
    """
    try:
        found = reload(config)
    except (Error, OSError) as error:
        answer["why"] = told(error)
        log.write("reload refused", why=told(error))
        return config
    answer |= {"applied": found.applied, "ignored": found.ignored}
    log.write("reloaded", applied=found.applied, ignored=found.ignored)
    return found.config


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
