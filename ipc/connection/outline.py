"""The outline of a vhost: its queues, whether anybody takes from them, and its bindings.

A look that finds nothing new compares two pieces of memory, however many queues there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shmbroker.core import layout as at
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.catalog.catalog import BindingInfo, ExchangeInfo
from shmbroker.ipc.connection.broker import connect
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.settings.settings import Pattern
from shmbroker.ipc.vhost import vhost as vhosts


@dataclass(frozen=True, slots=True)
class QueueOutline:
    name: str
    reference: int
    """Another one if it was deleted and made again."""
    is_durable: bool
    is_temporary: bool
    is_consumed: bool
    selectors: tuple[str, ...] = ()
    """Of its consumers, if each has told one: no other message is taken."""


@dataclass(frozen=True, slots=True)
class Outline:
    queues: tuple[QueueOutline, ...]
    exchanges: tuple[ExchangeInfo, ...]
    bindings: tuple[BindingInfo, ...]
    patterns: tuple[Pattern, ...] = ()


class Outlines(Closable):
    """Of a vhost that may be made anew under its name.  Of one thread at a time."""

    def __init__(self, vhost: str) -> None:
        self._broker = connect(f"shm://{vhost}", observe=True)
        self._file = _file_of(vhost)
        self._seen: tuple[int, bytes] | None = None

    def look(self) -> Outline | None:
        """None: nothing has changed since the last one."""
        broker = self._broker
        catalog, participants = broker._catalog, broker._participants
        # first: what changes while the rows are read is seen by the next look
        now = catalog.generation, participants.uses_now()
        if now == self._seen:
            return None
        self._seen = now
        rows = list(catalog.queues())
        taken = participants.taken([row.reference for row in rows])
        queues = (
            QueueOutline(
                row.name,
                row.reference,
                bool(row.word(at.QUEUE_FLAGS_AT) & at.QUEUE_DURABLE),
                bool(row.word(at.QUEUE_FLAGS_AT) & at.QUEUE_TEMPORARY),
                row.reference in taken,
                tuple(sorted(taken.get(row.reference, ()))),
            )
            for row in rows
        )
        return Outline(
            tuple(queues), tuple(catalog.exchanges()), tuple(catalog.bindings()),
            tuple(sorted(catalog.patterns())),
        )  # fmt: skip

    def queue(self, name: str) -> Queue:
        """NotFound: it was deleted meanwhile."""
        return self._broker.queue(name)

    @property
    def is_current(self) -> bool:
        """False: another vhost has its name now, or none has."""
        try:
            return _file_of(self._broker.vhost) == self._file
        except FileNotFoundError:
            return False

    def close(self) -> None:
        self._broker.close()


class Outlook(Closable):
    """Outlines of whichever vhost has this name now.  Of one thread at a time."""

    def __init__(self, vhost: str) -> None:
        self._vhost = vhost
        self._outlines: Outlines | None = None

    def look(self) -> Outline | None:
        """None: nothing has changed; Error or OSError: it is being made, or removed."""
        if self._outlines is not None and not self._outlines.is_current:
            self.close()
        if self._outlines is None:
            self._outlines = Outlines(self._vhost)
        return self._outlines.look()

    def queue(self, name: str) -> Queue:
        """Of the vhost that was looked at; NotFound: it was deleted meanwhile."""
        assert self._outlines is not None
        return self._outlines.queue(name)

    def close(self) -> None:
        """The next look begins anew."""
        outlines, self._outlines = self._outlines, None
        if outlines is not None:
            outlines.close()


def _file_of(vhost: str) -> tuple[int, int]:
    begin, _ = vhosts.home(vhost, looks=True)
    found = Path(f"{begin}catalog").stat()
    return found.st_dev, found.st_ino
