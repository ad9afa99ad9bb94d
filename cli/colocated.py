"""What `status` shows of backups that brokers run for each other."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from shmbroker.cli.ordering import shown
from shmbroker.cli.output import visible

FILE: Final = "colocated"
"""In run/, as the broker writes it."""


def of_status(folder: Path, pid: int | None) -> dict[str, object]:
    """Nothing, if it has no [ha.colocated] or does not run."""
    told = shown(folder, FILE)
    if not told or told.get("process") != pid:
        return {}
    found: dict[str, object] = {"runs": told["runs"]}
    if "backup" in told:
        found["backup"] = {key: told[key] for key in ("backup", "at", "why")}
    return found


def as_text(told: dict[str, object]) -> dict[str, object]:
    """The same for people."""
    runs, backup = told.get("runs"), told.get("backup")
    found: dict[str, object] = {}
    if isinstance(runs, list) and runs:
        found["runs"] = ", ".join(f"{each['name']} of {visible(str(each['for']))}" for each in runs)
    if isinstance(backup, dict):
        there = f"{backup['backup']} at {visible(str(backup['at']))}"
        found["backup"] = there if backup["backup"] else f"none: {visible(str(backup['why']))}"
    return found
