"""Confirms of queues that wait for replicas elsewhere: what `Waited` says, told to the queues."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.queue_replica.original import copied
from shmbroker.netbridge.queue_replica.waited import NONE, Waited

if TYPE_CHECKING:
    from shmbroker.netbridge.carrier.end import End

NEVER: Final = math.inf


@dataclass(slots=True)
class Confirmed:
    queue: Queue
    waited: Waited
    below: int = NONE
    """As its publishers were told."""


class Confirming:
    """All of it is of the network thread."""

    def __init__(self, timeout: float, tell: Callable[[Mapping[str, Any]], None]) -> None:
        self.timeout, self._tell = timeout, tell
        self._queues: dict[bytes, Confirmed] = {}
        """By their identities."""

    def follow(self, who: End, identity: bytes, queue: Queue, wanted: int) -> None:
        """Confirms of this queue wait for so many replicas: this one, once it has shown it."""
        self._queues.setdefault(identity, Confirmed(queue, Waited(wanted))).waited.came(who)

    def sent(self, who: End, identities: set[bytes], now: float) -> None:
        for each in identities:
            self._queues[each].waited.sent(who, now)

    def answered(self, who: End, identities: set[bytes], now: float, *, owes: bool) -> None:
        for each in identities:
            self._queues[each].waited.answered(who, now, owes=owes)

    def shown(self, who: End, identity: bytes, below: int) -> None:
        found = self._queues[identity]
        found.waited.shown(who, below)
        self._move(found)

    def gone(self, who: End, identity: bytes) -> None:
        found = self._queues[identity]
        found.waited.gone(who)
        self._move(found)
        if found.waited.is_empty:
            del self._queues[identity]

    @property
    def due(self) -> float:
        return min((each.waited.due(self.timeout) for each in self._queues.values()), default=NEVER)

    def woken(self, now: float) -> None:
        for each in self._queues.values():
            late = each.waited.late(now, self.timeout)
            if late:
                self._tell({"event": "queue replica", "level": "warning",
                            "queue": each.queue.name, "replicas": len(late),
                            "what": "confirms do not wait for it: it does not answer"})  # fmt: skip
                self._move(each)

    def _move(self, of: Confirmed) -> None:
        below = of.waited.below
        if below != of.below:
            of.below = below
            with suppress(Error):  # it was deleted
                copied(of.queue, below)
