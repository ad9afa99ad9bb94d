"""The log of an instance: a line of JSON for each change of state, never one for each try."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from shmbroker.ipc.errors import SystemRefused
from shmbroker.ipc.refusal import told


class Log:
    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # one write a line, at the end: whoever rotates it by copying and truncating loses
            # nothing
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SystemRefused(f"{told(error)} (the log of instance {name!r})") from error

    def write(self, event: str, **fields: object) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": now, "instance": self.name, "event": event, **fields}
        os.write(self._file, (json.dumps(line, ensure_ascii=False) + "\n").encode())
