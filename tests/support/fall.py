"""A network thread that ends, as one with a fault would."""

from __future__ import annotations

from pathlib import Path

from shmbroker.netbridge.carrier.thread import NetworkThread


def falls_when(file: Path) -> None:
    """In this process."""
    turn = NetworkThread._turn

    def falls(thread: NetworkThread) -> None:
        if file.exists():
            raise RuntimeError("it fell")
        turn(thread)

    NetworkThread._turn = falls  # type: ignore[method-assign]
