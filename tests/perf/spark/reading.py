"""A spool file, read without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shmbroker.perf.spark import spool


def rows_of(path: Path, window: int = 0) -> dict[str, list[dict[str, Any]]]:
    """What is read of a file, by sort."""
    found: dict[str, list[dict[str, Any]]] = {"interval": [], "problem": [], "file": []}
    system, name = spool.opened(str(path))
    for batch in spool.read(system, name, window):
        for row in batch.to_pylist():
            found[row["sort"]].append(row)
    assert len(found["file"]) == 1
    return found


def sparse(row: dict[str, Any]) -> dict[int, int]:
    return dict(zip(row["indexes"], row["counts"], strict=True))
