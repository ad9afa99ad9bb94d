"""The name of a frame, wherever it is repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FRAME_BITS: Final = 32
"""Of a frame's number: which one of its segment it is; above them is the segment's serial."""


@dataclass(frozen=True, slots=True)
class Place:
    """A frame, with all that is before it in its segment, whoever has written it."""

    number: int
    epoch: int
    seal: int
    """The CRC of its segment's header, which has a random salt."""
    chain: int
    """A CRC over the heads of all records of the segment, up to its end."""

    def __str__(self) -> str:
        return f"{self.number >> FRAME_BITS:x}:{self.number & 0xFFFFFFFF} of epoch {self.epoch}"
