"""Whether a journal has a frame, looked up in its files while it is written."""

from __future__ import annotations

from pathlib import Path

from shmbroker.ipc.journal.place import Place
from shmbroker.ipc.journal.shipping import History


def has_frame(folder: Path, place: Place) -> bool:
    """By its number, epoch and chain, or one that repeats it."""
    with History(folder) as history:
        return history.seek(place)
