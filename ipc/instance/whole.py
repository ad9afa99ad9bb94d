"""Small files, most of them JSON, that are replaced atomically."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from shmbroker.ipc.base.errors import SystemRefused
from shmbroker.ipc.base.trust import PRIVATE_MODE, Trust, content_of


def write_whole(path: Path, content: dict[str, Any], *, synced: bool = False) -> None:
    """A reader meets the old content or the new one."""
    write_text(path, json.dumps(content) + "\n", synced=synced)


def write_text(path: Path, content: str, *, synced: bool = False) -> None:
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    temporary.unlink(missing_ok=True)
    made = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_MODE)
    try:
        with os.fdopen(made, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            if synced:
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    if synced:
        sync_folder(path.parent)


def read_whole(path: Path, trust: Trust | None = None) -> dict[str, Any]:
    """Empty if it is not there, or no content of ours; Untrusted if it is not to be believed."""
    try:
        content = json.loads(content_of(path, trust).decode())
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def check_is_file(path: Path) -> None:
    """SystemRefused if something else has this name; nothing there is good."""
    try:
        is_file = stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_file:
        raise SystemRefused(f"{path} is no file: move it away, and it is made anew")


def sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
