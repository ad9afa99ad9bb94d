"""The streams from elsewhere that a queue knows, and how far each of them is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shmbroker.core.layout import ORIGINS
from shmbroker.ipc._native import ffi, lib

NS = 1_000_000_000
WORD = 8


@dataclass(frozen=True, slots=True)
class Origin:
    identity: str
    """128 bits, as 32 hexadecimal digits."""
    position: int
    """Of the stream: all of its messages below are known here, and dropped if they come again."""
    owner: int | None
    """The participant that brings its messages; None: nobody does."""
    used: int
    """When one was brought last: nanoseconds since the epoch."""
    is_counted: bool = False
    """Of a remote producer, which may retry what it has left out."""

    @classmethod
    def of(cls, told: Any) -> Origin:
        identity = told.high.to_bytes(WORD, "little", signed=True)
        identity += told.low.to_bytes(WORD, "little", signed=True)
        return cls(identity.hex(), told.position, told.owner or None, told.used,
                   bool(told.counted))  # fmt: skip

    def __str__(self) -> str:
        if self.owner is not None:
            return f"{self.identity} at {self.position:,}, brought by participant {self.owner}"
        idle = datetime.fromtimestamp(self.used // NS, UTC).isoformat(" ")
        return f"{self.identity} at {self.position:,}, idle since {idle}"


def origins_of(queue: Any) -> tuple[Origin, ...] | int:
    """All of a queue of C, those that were used last first; or an error code."""
    told = ffi.new("sb_origin[]", ORIGINS)
    count: int = lib.sb_origins(queue, told, ORIGINS)
    if count < 0:
        return count
    found = (Origin.of(told[each]) for each in range(count))
    return tuple(sorted(found, key=lambda each: each.used, reverse=True))
