"""Duplicates: takers, readers and followers ask here for a message's verdict (once.py)."""

from __future__ import annotations

from shmbroker.core.atomics import load, load_acquire
from shmbroker.core.chunk import is_once
from shmbroker.core.kernel import cold, exported_cold
from shmbroker.core.layout import MESSAGE_MARK, MESSAGE_POSITION
from shmbroker.core.once import is_verdict, verdict_at
from shmbroker.core.tail import tail_pass


@cold
def verdict_of(port: int, position: int) -> int:
    """1 if the published message at this position is a duplicate, 0 if it counts.

    Also 0 if its slot is of a later lap by now: nobody can have that message any more.
    """
    verdict = load_acquire(verdict_at(port, position))
    if not is_verdict(verdict, position):
        tail_pass(port, position)
        verdict = load_acquire(verdict_at(port, position))
    return int(is_verdict(verdict, position) and verdict & 1)


@exported_cold
def is_duplicate(port: int, message: int) -> int:
    """1 if this message, which was taken or looked at, is a copy of one that counts."""
    if not is_once(load(message + MESSAGE_MARK)):
        return 0
    return verdict_of(port, load(message + MESSAGE_POSITION))
