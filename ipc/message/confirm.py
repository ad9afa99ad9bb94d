"""Levels of confirms: where a message is when its publisher goes on (docs/durability.md)."""

from __future__ import annotations

from typing import Final, Literal

from shmbroker.core.layout import (
    CONFIRM_DISK,
    CONFIRM_EFFECTIVE,
    CONFIRM_REPLICATED,
    CONFIRM_SHM,
)
from shmbroker.ipc.base.errors import InvalidArgument

Confirm = Literal["shm", "disk", "replicated", "disk+replicated"]

LEVELS: Final[dict[Confirm, int]] = {
    "shm": CONFIRM_SHM,
    "disk": CONFIRM_DISK,
    "replicated": CONFIRM_REPLICATED,
    "disk+replicated": CONFIRM_DISK | CONFIRM_REPLICATED,
}
ALL_LEVELS: Final = max(LEVELS.values())
_NAMES = {number: name for name, number in LEVELS.items()}


def level_of(confirm: Confirm | None) -> int:
    """For C; None: the effective level of the queue."""
    if confirm is None:
        return CONFIRM_EFFECTIVE
    if confirm not in LEVELS:
        names = ", ".join(f'"{each}"' for each in LEVELS)
        raise InvalidArgument(f"confirm is one of {names}, not {confirm!r}")
    return LEVELS[confirm]


def level_name(level: int) -> Confirm:
    return _NAMES[level]
