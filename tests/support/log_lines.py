"""What processes have written into a log, a JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def log_lines(path: Path) -> list[dict[str, Any]]:
    """Those that are there as a whole; another process may be writing the last one."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def log(path: Path, line: Mapping[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(dict(line)) + "\n")
