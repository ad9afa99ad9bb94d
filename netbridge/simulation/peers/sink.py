"""Where a stream goes, each message once: `carrier/target.py` and `ipc/sink/`, of one connection.

What the stream brings is in its queues together with the mark of the stream, and is confirmed when
it is synced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from shmbroker.netbridge.link.inflow import Poured
from shmbroker.netbridge.simulation.kept import nothing
from shmbroker.netbridge.simulation.peers.message import Message, messages
from shmbroker.netbridge.simulation.peers.store import Change, Content, Store
from shmbroker.netbridge.simulation.world import Step


@dataclass(frozen=True, slots=True)
class Goes:
    """A message goes into queues, if into any."""

    change: Change
    then: Step = nothing
    """At once: what is not of the store."""


@dataclass(frozen=True, slots=True)
class Refused:
    why: str


class Full:
    """One of the queues has no room."""


Verdict: TypeAlias = Goes | Refused | Full


class Sink:
    def __init__(
        self,
        store: Store,
        origin: bytes,
        verdict: Callable[[Message], Verdict],
        knew: Callable[[Message], None],
        synced: Step,
    ) -> None:
        """`knew`: called for what comes and was there."""
        self._store, self._origin = store, origin
        self._verdict, self._knew, self._tell_synced = verdict, knew, synced
        if self.confirmed < self.mark:
            store.when_synced(synced)

    @property
    def mark(self) -> int:
        return self._store.memory.marks.get(self._origin, 0)

    @property
    def confirmed(self) -> int:
        return self._store.synced.marks.get(self._origin, 0)

    def pour(self, buffer: bytes | memoryview) -> Poured:
        size = done = 0
        told = Poured(0, 0, 0)
        for length, position, message in messages(buffer):
            if position < self.mark:
                self._knew(message)
            else:
                verdict = self._verdict(message)
                if isinstance(verdict, Refused):
                    told = replace(told, refused=verdict.why, position=position, skip=length)
                    break
                if isinstance(verdict, Full):
                    told = replace(told, is_full=True)
                    break
                self._moves(position + 1, verdict.change)
                verdict.then()
            size, done = size + length, done + 1
        if done:
            self._store.when_synced(self._tell_synced)
        return replace(told, bytes=size, messages=done, end=self.mark, confirmed=self.confirmed)

    def skip(self, end: int) -> None:
        if end > self.mark:
            self._moves(end, lambda content: None)
            self._store.when_synced(self._tell_synced)

    def _moves(self, end: int, change: Change) -> None:
        def both(content: Content) -> None:
            change(content)
            content.marks[self._origin] = end

        self._store.does(both)

    def forget(self) -> None:
        forget = partial(_forget, self._origin)
        if self.mark:
            self._store.does(forget)


def _forget(origin: bytes, content: Content) -> None:
    content.marks.pop(origin, None)
