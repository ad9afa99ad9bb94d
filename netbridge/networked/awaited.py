"""Which of the queues that others fetch are to be looked at, and what the rest of them wait for.

    DUE       it is looked at now
    EMPTY     until a message may be taken of it: its ring wakes the sleeper
    STUCK     it has messages, and none of them goes now: until there is room on a way, another
              message may be taken, or one comes back
    ABSENT    it was not there, or nothing of it may go: until the catalog changes

For one thread.  A queue that waits costs it nothing, however many there are.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterable
from functools import partial
from typing import Any

from shmbroker.ipc.base.closable import Closable
from shmbroker.netbridge.carrier.sleeper import Sleeper

Wait = tuple[Any, int, int]
"""A queue as C knows it, a position, and how many messages had come back: until one may be taken at
that position, or another number has."""


class Awaited(Closable):
    def __init__(self) -> None:
        self.due: dict[str, None] = {}
        self.stuck: set[str] = set()
        self.absent: set[str] = set()
        self._wanted: frozenset[str] = frozenset()
        self._watched: dict[str, tuple[int, Wait]] = {}
        """With their tickets."""
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._event, select.POLLIN)
        self._writing = threading.Lock()
        self._is_closed = False
        self._sleeper = Sleeper(self._event)

    # --- from any thread ----------------------------------------------------------------------

    def wake(self) -> None:
        """`sleep` ends."""
        with self._writing:
            if not self._is_closed:
                os.eventfd_write(self._event, 1)

    # --- of one thread ------------------------------------------------------------------------

    def wants(self, names: frozenset[str]) -> None:
        """These from now on, and no others; each of them is due."""
        for name in self._wanted - names:
            self._leaves(name)
            self._forget(name)
        self._wanted = names
        self.looks_at(sorted(names))

    def looks_at(self, names: Iterable[str]) -> None:
        self.due.update((name, None) for name in names if name in self._wanted)

    def is_empty(self, name: str, until: Wait) -> None:
        self._leaves(name)
        self._watch(name, until)

    def is_stuck(self, name: str, until: Wait | None = None) -> None:
        """None: it waits for room, so another message would change nothing."""
        self._leaves(name)
        self.stuck.add(name)
        if until is not None:
            self._watch(name, until)

    def is_absent(self, name: str) -> None:
        self._leaves(name)
        self.absent.add(name)

    def sleep(self, seconds: float | None) -> None:
        """Until one of them is due, somebody wakes us, or the time is over."""
        self._poll.poll(None if seconds is None else seconds * 1000)
        self.hear()

    def hear(self) -> None:
        """What rings have told meanwhile."""
        try:
            os.eventfd_read(self._event)
        except BlockingIOError:
            return
        self._sleeper.ring()

    def close(self) -> None:
        self._sleeper.close()
        with self._writing:
            self._is_closed = True
            os.close(self._event)

    def _leaves(self, name: str) -> None:
        self.due.pop(name, None)
        self.stuck.discard(name)
        self.absent.discard(name)

    def _watch(self, name: str, until: Wait) -> None:
        if name in self._watched:
            if self._watched[name][1] == until:
                return
            self._forget(name)
        self._watched[name] = self._sleeper.watch(*until, partial(self._rung, name)), until

    def _forget(self, name: str) -> None:
        if name in self._watched:
            ticket, until = self._watched.pop(name)
            self._sleeper.forget(ticket, *until)

    def _rung(self, name: str) -> None:
        del self._watched[name]
        self.looks_at([name])
