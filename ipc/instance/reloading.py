"""Reading the configuration again, at a SIGHUP, and what came of it; files in run/.

reload.asked   JSON: the id of who waits for an answer
reload         JSON: the same id, and what came of it
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.instance import ordering
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.log import Log
from shmbroker.ipc.instance.status import RUN

ASKED: Final = "reload.asked"
ANSWER: Final = "reload"


@dataclass(frozen=True, slots=True)
class Reloaded:
    config: Config
    applied: tuple[str, ...]
    ignored: tuple[str, ...]
    """Keys that need a restart."""


def again(
    reload: Callable[[Config], Reloaded], config: Config, log: Log
) -> tuple[Config, dict[str, Any]]:
    """The configuration from now on, and the answer.  An error in it changes nothing."""
    # before the configuration, which was changed before its id was written
    number = ordering.read_asked(config.folder / RUN / ASKED, log).get("id")
    try:
        found = reload(config)
    except (Error, OSError) as error:
        why = told(error)
        log.write("reload refused", why=why)
        return config, {"id": number, "why": why}
    log.write("reloaded", applied=found.applied, ignored=found.ignored)
    return found.config, {"id": number, "applied": found.applied, "ignored": found.ignored}


def asked(folder: Path, timeout: float) -> dict[str, Any] | None:
    """The answer of a broker that was sent SIGHUP; None if it does not answer in time."""
    return ordering.exchanged(folder, (ASKED, ANSWER, signal.SIGHUP), {}, timeout)
