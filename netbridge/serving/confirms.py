"""Who waits until what was published to a durable queue is confirmed: one bell for all of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection
from functools import reduce
from itertools import count
from operator import and_
from typing import Any

from shmbroker.core.codes import OK, UNCONFIRMED
from shmbroker.core.layout import CONFIRM_EFFECTIVE, CONFIRM_SHM, POSITION_BITS
from shmbroker.ipc._native import lib
from shmbroker.netbridge.carrier.reached import Place
from shmbroker.netbridge.carrier.sleeper import CONFIRMED, Sleeper
from shmbroker.netbridge.serving.alarms import Alarms

Told = Callable[[int], None]
"""The level that it has, or why nobody will say."""
IsOver = Callable[[], bool]
"""Nobody hears any more."""
Waiter = tuple[int, int, Told, IsOver]
"""For which position, and a number of its own: a heap compares no further."""
LINES_MAX = 32
DROPS_MIN = 16
"""Waiters of one ring, before those whose time is over are looked for."""


def _never() -> bool:
    return False


class Confirms:
    """Of a queue, as C knows it, at one level.

    A position says in which ring it is: the queue's own, its inbox, one of another node.  Those of
    one ring are reached in their order; nothing is known of those of two.  A program may name any
    ring, so those with high numbers share a line: none of them holds up one that is below it.
    """

    def __init__(self, sleeper: Sleeper, queue: Any, level: int) -> None:
        self._sleeper, self._queue, self._level = sleeper, queue, level
        self._lines: dict[int, Line] = {}

    @property
    def is_idle(self) -> bool:
        return all(each.is_idle for each in self._lines.values())

    def wait(self, position: int, told: Told, is_over: IsOver = _never) -> None:
        ring = (position >> POSITION_BITS) % LINES_MAX
        line = self._lines.get(ring)
        if line is None:
            line = self._lines[ring] = Line(self._sleeper, self._queue, self._level)
        line.wait(position, told, is_over)

    def close(self) -> None:
        for line in self._lines.values():
            line.close()


class Line:
    """Who waits for positions of one ring: the lowest is watched."""

    def __init__(self, sleeper: Sleeper, queue: Any, level: int) -> None:
        self._sleeper, self._queue, self._level = sleeper, queue, level
        self._returned = CONFIRMED if level == CONFIRM_EFFECTIVE else CONFIRMED - level
        self._waiting: list[Waiter] = []
        self._numbers = count()
        self._drops_at = DROPS_MIN
        self._ticket: tuple[int, int] | None = None

    @property
    def is_idle(self) -> bool:
        return not self._waiting

    def wait(self, position: int, told: Told, is_over: IsOver) -> None:
        if not self._waiting or position < self._waiting[0][0]:
            code: int = lib.sb_confirm(self._queue, position, self._level, 0)
            if code != UNCONFIRMED:
                told(code)
                return
        heapq.heappush(self._waiting, (position, next(self._numbers), told, is_over))
        self._drop()
        self._watch()

    def _drop(self) -> None:
        """Once there are twice as many as were left: a wait costs the same however many wait."""
        if len(self._waiting) >= self._drops_at:
            self._waiting = [each for each in self._waiting if not each[3]()]
            heapq.heapify(self._waiting)
            self._drops_at = max(DROPS_MIN, 2 * len(self._waiting))

    def _watch(self) -> None:
        if not self._waiting:
            return
        position = self._waiting[0][0]
        if self._ticket is not None:
            if self._ticket[1] <= position:
                return
            self._forget()
        ticket = self._sleeper.watch(self._queue, position, self._returned, self._rung)
        self._ticket = ticket, position

    def _rung(self) -> None:
        self._ticket = None
        while self._waiting:
            position, _, told, _ = self._waiting[0]
            code: int = lib.sb_confirm(self._queue, position, self._level, 0)
            if code == UNCONFIRMED:
                break
            heapq.heappop(self._waiting)
            told(code)
        self._watch()

    def _forget(self) -> None:
        if self._ticket is not None:
            ticket, position = self._ticket
            self._sleeper.forget(ticket, self._queue, position, self._returned)
            self._ticket = None

    def close(self) -> None:
        self._forget()
        self._waiting.clear()


Waits = Callable[[Any, int], Confirms]
"""Who waits for confirms of a queue, as C knows it, at a level."""


class Hearer:
    """Who hears the confirm.  `told` is told once: its level, or UNCONFIRMED if it comes later."""

    def __init__(self, alarms: Alarms, until: float, told: Told, is_gone: IsOver) -> None:
        self._told: Told | None = told
        self._is_gone = is_gone
        self._alarm = alarms.at(until, lambda: self(UNCONFIRMED))

    def __call__(self, level: int) -> None:
        told, self._told = self._told, None
        if told is not None:
            self._alarm.cancel()
            told(level)

    def is_over(self) -> bool:
        return self._told is None or self._is_gone()


def in_time(alarms: Alarms, until: float, told: Told, is_gone: IsOver = _never) -> Hearer:
    return Hearer(alarms, until, told, is_gone)


def wait_for_all(waits: Waits, places: Collection[Place], level: int, told: Hearer) -> None:
    """Told is what all of them have, or why nobody will say."""
    if not places:  # what they are of was deleted
        told(CONFIRM_SHM)
        return
    levels: list[int] = []

    def one(level: int) -> None:
        levels.append(level)
        if len(levels) == len(places):
            least = min(levels)
            told(least if least < OK else reduce(and_, levels))

    for queue, position in places:
        waits(queue, level).wait(position, one, told.is_over)
