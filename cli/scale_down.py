"""A broker that is stopped and gives all that it has to another one: seen until it has ended."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import Any, Final

import click

from shmbroker.cli.ordering import order, shown
from shmbroker.cli.output import say, visible

FILE: Final = "scale-down"
"""In run/, as the broker writes it."""
LOOK_SECONDS: Final = 0.2


def is_wanted(folder: Path) -> bool:
    """Whether a stop moves what is there."""
    from shmbroker.ipc.instance.config import config

    if config.load(folder).policy != "live-only":
        return False
    from shmbroker.netbridge.config.config import load

    wanted = load(folder)[1].scale_down
    return wanted is not None and wanted.is_enabled


def stay(folder: Path) -> None:
    """What is there stays when it is stopped."""
    order(folder, "cluster", {"verb": "stay"})


def stop(folder: Path, timeout: float | None) -> None:
    """Stop it, and tell how far it is; ClickException if it has not moved everything."""
    from shmbroker.ipc.instance import status
    from shmbroker.ipc.instance.readable import is_readable

    late = None if timeout is None else time.monotonic() + timeout
    found = status.read(folder)
    descriptor = found.process.descriptor() if found.process else None
    if descriptor is None or found.process is None:
        raise status.NotRunning(f"instance {folder} does not run on this host")
    status.signalled(folder, signal.SIGTERM, 0)
    told = ""
    while not is_readable(descriptor, LOOK_SECONDS):
        if late is not None and time.monotonic() >= late:
            raise click.ClickException(
                f"{folder} is still {status.read(folder).state}; once more stops it at once"
            )
        told = _tell(_now(folder, found.process.pid), told)
    now = _now(folder, found.process.pid)
    _tell(now, told)
    if now.get("state") == "failed":
        raise click.ClickException(f"not scaled down: {now.get('why')}")
    ended = status.read(folder)
    if now.get("state") != "done" or ended.why:
        raise click.ClickException(
            ended.why
            or "it was stopped before it had moved everything, or started without [ha.scale-down]"
        )


def _now(folder: Path, pid: int) -> dict[str, Any]:
    told = shown(folder, FILE)
    return told if told.get("process") == pid else {}


def as_text(told: dict[str, Any]) -> str:
    """Empty: it has not begun."""
    if not told.get("to"):
        return ""
    if told.get("state") == "waiting":
        return visible(str(told.get("why")))
    return (
        f"moved {told['queues']} of {told['of-queues']} queues, {told['messages']} of "
        f"{told['of-messages']} messages to {visible(str(told['to']))}"
    )


def _tell(now: dict[str, Any], told: str) -> str:
    """On a terminal each step, else the first one and the last."""
    text = as_text(now)
    is_last = now.get("state") in ("done", "failed")
    if text and text != told and (is_last or not told or sys.stderr.isatty()):
        say(text)
        return text
    return told


def of_status(folder: Path, state: str, pid: int | None) -> dict[str, object]:
    """What `status` shows of one that is being stopped."""
    text = as_text(_now(folder, pid or 0)) if state == "handing over" else ""
    return {"scale-down": text} if text else {}
