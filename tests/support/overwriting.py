"""Bytes of a message that no program can publish: they are written over others in the arena."""

from __future__ import annotations

import mmap
from pathlib import Path

ODD = {"odd": 7}
PACKED = b"\x81\xa3odd\x07"
BROKEN = b"\x82\x01\x02\x03\xcc\x04", b"\x8f\xa1n\x01\xc0\xc0", b"\x81\xa1n\x01\xc0\xc0"
"""Keys that are no text, more pairs than there are, something behind them."""


def overwrite(vhost: str, by: bytes) -> None:
    """The properties ODD, of the first message that has them."""
    with (
        Path(f"/dev/shm/shmbroker.{vhost}.arena").open("r+b") as file,
        mmap.mmap(file.fileno(), 0) as arena,
    ):
        at = arena.find(PACKED)
        arena[at : at + len(by)] = by
