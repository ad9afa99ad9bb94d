"""Who waits until what was published to a durable queue is confirmed: one bell for all of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from shmbroker.core.codes import UNCONFIRMED
from shmbroker.core.layout import CONFIRM_EFFECTIVE
from shmbroker.ipc._native import lib
from shmbroker.ipc.queue.queue import Queue
from shmbroker.netbridge.carrier.sleeper import CONFIRMED, Sleeper
from shmbroker.netbridge.serving.alarms import Alarms

Told = Callable[[int], None]
"""The level that it has, or why nobody will say."""


class Confirms:
    """Of a queue, as C knows it, at one level."""

    def __init__(self, sleeper: Sleeper, queue: Any, level: int) -> None:
        self._sleeper, self._queue, self._level = sleeper, queue, level
        self._returned = CONFIRMED if level == CONFIRM_EFFECTIVE else CONFIRMED - level
        self._waiting: deque[tuple[int, Told]] = deque()
        self._ticket: tuple[int, int] | None = None

    @property
    def is_idle(self) -> bool:
        return not self._waiting

    def wait(self, position: int, told: Told) -> None:
        if not self._waiting:
            code: int = lib.sb_confirm(self._queue, position, self._level, 0)
            if code != UNCONFIRMED:
                told(code)
                return
        self._waiting.append((position, told))
        self._watch()

    def _watch(self) -> None:
        if self._ticket is None and self._waiting:
            position = self._waiting[0][0]
            ticket = self._sleeper.watch(self._queue, position, self._returned, self._rung)
            self._ticket = ticket, position

    def _rung(self) -> None:
        self._ticket = None
        while self._waiting:
            position, told = self._waiting[0]
            code: int = lib.sb_confirm(self._queue, position, self._level, 0)
            if code == UNCONFIRMED:
                break
            self._waiting.popleft()
            told(code)
        self._watch()

    def close(self) -> None:
        if self._ticket is not None:
            ticket, position = self._ticket
            self._sleeper.forget(ticket, self._queue, position, self._returned)
            self._ticket = None
        self._waiting.clear()


Waits = Callable[[Any, int], Confirms]
"""Who waits for confirms of a queue, as C knows it, at a level."""


def in_time(alarms: Alarms, until: float, told: Told) -> Told:
    """Who hears the confirm.  `told` is told once: its level, or UNCONFIRMED if it comes later."""
    is_told = False

    def hear(level: int) -> None:
        nonlocal is_told
        if not is_told:
            is_told = True
            alarm.cancel()
            told(level)

    alarm = alarms.at(until, lambda: hear(UNCONFIRMED))
    return hear


def wait_for_all(waits: Waits, queues: Collection[Queue], level: int, told: Told) -> None:
    """For all that these queues have now: the least of their levels is told."""
    levels: list[int] = []

    def one(level: int) -> None:
        levels.append(level)
        if len(levels) == len(queues):
            told(min(levels))

    for queue in queues:
        waits(queue._queue, level).wait(max(0, queue.published - 1), one)
