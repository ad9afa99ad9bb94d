"""What the broker says of its node, its cluster and its links, and its log and errors.

If it hangs, this is what it has said last: it is asked for news, and not again for a while if it
does not answer.
"""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from shmbroker.cli import link, ordering
from shmbroker.cli.errors import fields as error_fields
from shmbroker.ipc.base import trust
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.instance import status

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.instance.config.config import Config

NEWS_SECONDS: Final = 2.0
SILENT_SECONDS: Final = 15.0
LOG_BYTES: Final = 256 << 10
LINES: Final = 300


class Told:
    """One noun of what a broker shows: `ha`, or `cluster`.  From any thread."""

    def __init__(self, config: Config, noun: str, file: str) -> None:
        self._config, self._noun, self._file = config, noun, file
        self._lock = threading.Lock()
        self._due = 0.0
        self._answers = True

    def read(self) -> dict[str, Any]:
        folder = self._config.folder
        with self._lock, suppress(Error, OSError):
            if time.monotonic() >= self._due and status.read(folder).process is not None:
                self._answers = ordering.ask_to_show(folder, self._noun)
                self._due = time.monotonic() + (NEWS_SECONDS if self._answers else SILENT_SECONDS)
        with suppress(Error, OSError):
            return ordering.shown(folder, self._file) | {"answers": self._answers}
        return {"answers": False}


def links(vhost: str) -> list[dict[str, Any]]:
    with suppress(Error, OSError):
        return link.fields_of(link.rows(vhost), vhost)
    return []


def errors(broker: Broker) -> list[dict[str, Any]]:
    return [error_fields(each) for each in broker.errors()]


def log(config: Config) -> list[dict[str, Any]]:
    """Its last lines, the newest first."""
    try:
        file = trust.opened(config.log, os.O_RDONLY, trust.seen_files())
    except (Error, OSError):
        return []
    with os.fdopen(file, "rb") as content:
        size = content.seek(0, os.SEEK_END)
        content.seek(max(0, size - LOG_BYTES))
        lines = content.read().splitlines()
    found = []
    for line in reversed(lines[-LINES:]):
        with suppress(ValueError):
            each = json.loads(line)
            if isinstance(each, dict):
                found.append(each)
    return found
