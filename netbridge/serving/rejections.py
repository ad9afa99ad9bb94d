"""What programs reject, while there is no room where the dead of its queue go.

C waits for room for 10 ms, and no message is worth that pause of the network thread each time.  So
once none was found, what is rejected into the same dead-letter queue waits here for a moment, from
whatever queue it is.  Then one of it is tried, and if that finds no room either, all of it goes
back.
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from shmbroker.core.codes import FULL, OK, REVOKED
from shmbroker.ipc.base.errors import Error, QueueFull, error_for
from shmbroker.netbridge.remote.body import refusal
from shmbroker.netbridge.serving.alarms import Alarms
from shmbroker.netbridge.serving.hands import TakenBatch
from shmbroker.netbridge.wire.frame import Command

if TYPE_CHECKING:
    from shmbroker.netbridge.serving.served import Served

AGAIN_SECONDS: Final = 0.1


class Rejections:
    def __init__(self, alarms: Alarms) -> None:
        self._alarms = alarms
        self._waiting: dict[str, list[tuple[Served, Command]]] = {}
        """By the dead-letter queue that had no room just now."""
        self._dead: dict[str, str] = {}
        """That of each queue, until it is tried again."""

    def reject(self, served: Served, command: Command) -> None:
        batch = _batch(served, command)
        dead = self._dead_of(batch) if self._waiting else ""
        if dead in self._waiting:
            self._waiting[dead].append((served, command))
        else:
            self._try(batch, served, command)

    def _try(self, batch: TakenBatch | None, served: Served, command: Command) -> None:
        codes = set(served.hands.reject(command.value, command.count))
        if FULL in codes:
            dead = self._dead_of(batch)
            if dead not in self._waiting:
                self._waiting[dead] = []
                self._alarms.at(time.monotonic() + AGAIN_SECONDS, partial(self._again, dead))
            _has_no_room(batch, served, command)
        elif codes <= {OK}:
            served.done(command)
        else:
            served.refuse(command, error_for(REVOKED, "rejecting deliveries"))

    def _again(self, dead: str) -> None:
        for served, command in self._waiting.pop(dead):
            if served.session.is_over:  # it has given back what it had in hand
                continue
            batch = _batch(served, command)
            if dead in self._waiting:
                served.hands.give_back(range(command.value, command.value + command.count))
                _has_no_room(batch, served, command)
            else:
                self._try(batch, served, command)
        self._dead.clear()  # a queue may be made anew with another one

    def _dead_of(self, batch: TakenBatch | None) -> str:
        queue = None if batch is None else batch.queue
        if queue is not None and queue.name not in self._dead:
            with suppress(Error):  # it was deleted meanwhile
                self._dead[queue.name] = str(queue.explain()["dead_letter"].value)
        return "" if queue is None else self._dead.get(queue.name, "")


def _batch(served: Served, command: Command) -> TakenBatch | None:
    hands = served.hands.stretches(command.value, command.count)
    taken = (hand.batch for hand, _, _ in hands if isinstance(hand.batch, TakenBatch))
    return next(taken, None)


def _has_no_room(batch: TakenBatch | None, served: Served, command: Command) -> None:
    """The code says that it is in hand no more; the error says why."""
    queue = "" if batch is None else batch.source
    text = f"the dead-letter queue of {queue!r} is full: the message was given back"
    served.done(command, REVOKED, body=refusal(QueueFull(text))[1])
