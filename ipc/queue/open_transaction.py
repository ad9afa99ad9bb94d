"""A transaction whose `with` block is open, as long as publishing beside it is to be noticed.

What a queue or an exchange publishes takes effect at once, whatever becomes of the transaction, and
users of databases expect otherwise.  So each block warns once.  A context variable says in whose
block we are: a thread has its own, and a task of asyncio has that of the block it was made in.
"""

from __future__ import annotations

import sys
import warnings
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker


class OpenTransaction:
    """From begin to end."""

    __slots__ = ("broker", "warns")

    def __init__(self, broker: Broker, warns: bool) -> None:
        self.broker = broker
        self.warns = warns

    def begin(self) -> None:
        if self.warns:
            OPEN.append(self)
            _ours.set((*_ours.get(), self))

    def end(self) -> None:
        if self in OPEN:
            OPEN.remove(self)
            _ours.set(tuple(each for each in _ours.get() if each in OPEN))


OPEN: list[OpenTransaction] = []
"""Of all threads.  As long as it is empty, publishing looks no further."""

_ours: ContextVar[tuple[OpenTransaction, ...]] = ContextVar("open_transactions", default=())


def notice(broker: Broker, destination: str) -> None:
    """Something is published to this destination, and not through a transaction."""
    for each in _ours.get():
        if each.broker is broker and each.warns and each in OPEN:
            each.warns = False
            warnings.warn(
                f"{destination}: published beside the open transaction, so it takes effect at "
                "once and stays after a rollback; publish through the transaction, as in "
                "tx.queue(NAME).publish(...), or open it with warn=False",
                RuntimeWarning,
                stacklevel=_level(),
            )


def _level() -> int:
    """How far above `notice` the caller's own code is."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("shmbroker."):
        level, frame = level + 1, frame.f_back
    return level
