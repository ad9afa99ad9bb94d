"""The log of an instance: a line of JSON for each change of state, never one for each try.

That it cannot be written is no reason to end: lines are left out, and how many is said by the next.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from shmbroker.ipc.base.errors import SystemRefused
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.base.trust import make_folder, opened
from shmbroker.ipc.instance.full_disk import is_full


class Log:
    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self._path = path
        self._file: int | None = None
        self._left_out = 0
        self._is_torn = False
        """The last line has not its end."""
        try:
            self._open()
        except OSError as error:
            if not is_full(error):
                raise SystemRefused(f"{told(error)} (the log of instance {name!r})") from error

    def write(self, event: str, **fields: object) -> None:
        try:
            if self._file is None:
                self._open()
            if self._left_out:
                self._append("lines left out", {"count": self._left_out})
                self._left_out = 0
            self._append(event, fields)
        except OSError:
            self._left_out += 1

    def _open(self) -> None:
        make_folder(self._path.parent)
        self._file = opened(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def _append(self, event: str, fields: dict[str, object]) -> None:
        """One write a line, at the end: rotating it by copying and truncating loses nothing."""
        assert self._file is not None
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": now, "instance": self.name, "event": event, **fields}
        shown = "\n" * self._is_torn + json.dumps(line, ensure_ascii=False) + "\n"
        text = shown.encode(errors="backslashreplace")  # as JSON writes a name that is no UTF-8
        wrote = os.write(self._file, text)
        self._is_torn = wrote < len(text) and (wrote > 0 or self._is_torn)
        if wrote < len(text):
            raise OSError(f"{self._path} has {wrote} bytes of a line of {len(text)}")
