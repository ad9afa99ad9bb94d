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
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shmbroker.cli import doctor, ordering
from shmbroker.cli.errors import fields as error_fields
from shmbroker.cli.metrics.vhost import arena_used
from shmbroker.ipc.base import trust
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.instance import status
from shmbroker.netbridge.broker.links import fields_of, rows

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.instance.config.config import Config
    from shmbroker.netbridge.config.config import Network

NEWS_SECONDS: Final = 2.0
SILENT_SECONDS: Final = 15.0
EXAMINED_SECONDS: Final = 10.0
SEVERITIES: Final = ("error", "warning", "note")
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


class Examined:
    """What `doctor` finds of this broker and its vhost, a moment ago.  From any thread."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._found: list[dict[str, str]] = []
        self._due = 0.0

    def read(self, broker: Broker) -> list[dict[str, str]]:
        with self._lock:
            if time.monotonic() >= self._due:
                found = [*doctor.of_vhost(broker), *doctor.of_broker(broker, self._config.folder)]
                found.sort(key=lambda each: SEVERITIES.index(each.severity))
                self._found = [
                    {"severity": each.severity, "subject": each.subject,
                     "problem": each.problem, "remedy": each.remedy} for each in found
                ]  # fmt: skip
                self._due = time.monotonic() + EXAMINED_SECONDS
            return self._found


def links(vhost: str) -> list[dict[str, Any]]:
    with suppress(Error, OSError):
        return fields_of(rows(vhost), vhost)
    return []


def of_process(pid: int | None) -> dict[str, int]:
    """What the broker uses: memory of its own, and seconds of a processor, and for how long it has
    run; nothing if it is dead, also before its parent has asked for its end."""
    with suppress(OSError, ValueError, IndexError):
        status = Path(f"/proc/{pid}/status").read_text()
        own = next((line for line in status.splitlines() if line.startswith("RssAnon")), "")
        numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = os.sysconf("SC_CLK_TCK")
        used, began = sum(map(int, numbers[11:13])) // ticks, int(numbers[19]) / ticks
        return {"process_bytes": int(own.split()[1]) << 10, "processor_seconds": used,
                "up_seconds": round(time.clock_gettime(time.CLOCK_BOOTTIME) - began)}  # fmt: skip
    return {}


def acceptors(network: Network) -> list[dict[str, Any]]:
    """Where the broker listens."""
    return [
        {"name": each.name, "uri": str(each.uri), "roles": [role.value for role in each.roles]}
        for each in network.acceptors.values()
    ]


def of_store(config: Config) -> dict[str, int]:
    with suppress(OSError):
        room = os.statvfs(config.store)
        return {"store_bytes": room.f_blocks * room.f_frsize,
                "store_free_bytes": room.f_bavail * room.f_frsize}  # fmt: skip
    return {}


def of_arena(broker: Broker) -> dict[str, int]:
    return {"arena_bytes": len(broker._arena), "arena_used_bytes": arena_used(broker)}


def exchanges(broker: Broker) -> list[dict[str, Any]]:
    bound: dict[str, list[dict[str, Any]]] = {}
    for each in broker.bindings():
        bound.setdefault(each.exchange, []).append(asdict(each))
    return [
        {"name": each.name, "kind": each.kind, "bindings": bound.get(each.name, [])}
        for each in broker.exchanges()
        if each.name
    ]


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
