"""What programs reject, while there is no room where the dead of its queue go.

C waits for room for 10 ms, and no message is worth that pause of the network thread each time.  So
once none was found, what is rejected of the same queue waits here for a moment.  Then one of it is
tried, and if that finds no room either, all of it goes back to its queue.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final

from shmbroker.core.codes import FULL, OK, REVOKED
from shmbroker.ipc.base.errors import QueueFull, error_for
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
        """By the queue whose dead found no room just now."""

    def reject(self, served: Served, command: Command) -> None:
        queue = ""
        for hand, _, _ in served.hands.stretches(command.value, command.count):
            if isinstance(hand.batch, TakenBatch):
                queue = hand.batch.source
        if queue in self._waiting:
            self._waiting[queue].append((served, command))
        else:
            self._try(queue, served, command)

    def _try(self, queue: str, served: Served, command: Command) -> None:
        codes = set(served.hands.reject(command.value, command.count))
        if FULL in codes:
            self._waiting[queue] = []
            self._alarms.at(time.monotonic() + AGAIN_SECONDS, partial(self._again, queue))
            _has_no_room(queue, served, command)
        elif codes <= {OK}:
            served.done(command)
        else:
            served.refuse(command, error_for(REVOKED, "rejecting deliveries"))

    def _again(self, queue: str) -> None:
        for served, command in self._waiting.pop(queue):
            if served.session.is_over:  # it has given back what it had in hand
                continue
            if queue in self._waiting:
                served.hands.give_back(range(command.value, command.value + command.count))
                _has_no_room(queue, served, command)
            else:
                self._try(queue, served, command)


def _has_no_room(queue: str, served: Served, command: Command) -> None:
    """The code says that it is in hand no more; the error says why."""
    text = f"the dead-letter queue of {queue!r} is full: the message was given back"
    served.done(command, REVOKED, body=refusal(QueueFull(text))[1])
