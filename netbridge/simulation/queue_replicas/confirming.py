"""Confirms of durable originals that wait for replicas, as
netbridge/queue_replicated/confirming.py has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.queue_replica.waited import NONE, Waited
from shmbroker.netbridge.simulation.queue_replicas.queue import Queue

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.queue_replicas.broker import Broker

TIMEOUT_SECONDS: Final = 0.5
WANTED: Final = 1
Who = tuple[str, int]


class Confirming:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waited: dict[bytes, Waited] = {}
        self._below: dict[bytes, int] = {}

    def follow(self, who: Who, queue: Queue) -> None:
        self._waited.setdefault(queue.identity, Waited(WANTED)).came(who)

    def sent(self, who: Who, identities: set[bytes]) -> None:
        for each in identities:
            self._waited[each].sent(who, self._broker.host.clock)
        self._wake()

    def answered(self, who: Who, identities: set[bytes], *, owes: bool) -> None:
        for each in identities:
            self._waited[each].answered(who, self._broker.host.clock, owes=owes)
        self._wake()

    def shown(self, who: Who, identity: bytes, below: int) -> None:
        self._waited[identity].shown(who, below)
        self._move(identity)

    def gone(self, who: Who, identity: bytes) -> None:
        found = self._waited[identity]
        found.gone(who)
        self._move(identity)
        if found.is_empty:
            del self._waited[identity], self._below[identity]

    def tick(self) -> None:
        for identity, each in self._waited.items():
            if each.late(self._broker.host.clock, TIMEOUT_SECONDS):
                self._move(identity)
        self._wake()

    def _wake(self) -> None:
        due = min((each.due(TIMEOUT_SECONDS) for each in self._waited.values()), default=None)
        if due is not None:
            self._broker.wake(due)

    def _move(self, identity: bytes) -> None:
        below = self._waited[identity].below
        if below != self._below.get(identity, NONE):
            self._broker.watch.confirms(self._broker, identity, below)
        self._below[identity] = below

    def waits_at(self, identity: bytes) -> int:
        return self._below.get(identity, NONE)
