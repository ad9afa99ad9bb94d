"""A network thread that ends, and an owner of one that fails, as those with a fault would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shmbroker.netbridge.broker.owner import Owner
from shmbroker.netbridge.carrier.thread import NetworkThread


def falls_when(file: Path) -> None:
    """In this process."""
    turn = NetworkThread._turn

    def falls(thread: NetworkThread) -> None:
        if file.exists():
            raise RuntimeError("it fell")
        turn(thread)

    NetworkThread._turn = falls  # type: ignore[method-assign]


def reload_falls() -> None:
    """In this process."""

    def falls(owner: Owner, *given: Any) -> None:
        raise RuntimeError("it fell")

    Owner._reload = falls  # type: ignore[method-assign]
