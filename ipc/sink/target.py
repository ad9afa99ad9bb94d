"""Targets: numbers by which messages on their way say which queue of a node they are for."""

from __future__ import annotations

from shmbroker.ipc._native import lib


def target_of(name: str) -> int:
    """Of the queue of this name, at any node; never 0."""
    given = name.encode()
    number: int = lib.sb_target_of(given, len(given))
    return number
