"""A producer of a session: what it publishes goes into a queue, or through an exchange, once.

Its numbers are those of a stream at the queue's sink, so a publish that is said again is known.
What finds no room waits here, and what was published behind it waits as well: the order stays.
Of what was published in one call but in pieces, nothing goes in behind a piece that was refused.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import DUPLICATE, FULL, OK, TOO_MANY_OPEN
from shmbroker.core.layout import (
    CONFIRM_EFFECTIVE,
    CONFIRM_SHM,
    RECORD_HEAD_BYTES,
    RECORD_LENGTH_AT,
)
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import Error, InvalidArgument, NotFound, error_for
from shmbroker.ipc.base.nap import longer
from shmbroker.ipc.message.confirm import LEVELS, level_name
from shmbroker.ipc.sink.sink import Poured
from shmbroker.netbridge.carrier.sleeper import ANY, ROOM
from shmbroker.netbridge.remote.body import PASSED_OVER, SEEN
from shmbroker.netbridge.serving.alarms import NEVER, Alarm
from shmbroker.netbridge.serving.confirms import in_time
from shmbroker.netbridge.serving.destination import Destination
from shmbroker.netbridge.wire.frame import Command
from shmbroker.netbridge.wire.words import Demand, Level, Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.serving.served import Served

LEVEL_NUMBERS = {
    each: CONFIRM_EFFECTIVE if each is Demand.EFFECTIVE else LEVELS[each.value] for each in Demand
}
LEVEL_WORDS = {number: Level(level_name(number)) for number in LEVELS.values()}


def until(command: Command) -> float:
    return NEVER if command.wait_ms < 0 else time.monotonic() + command.wait_ms / 1000


@dataclass(slots=True)
class Publish:
    command: Command
    until: float
    offset: int = 0
    done: int = 0
    """Messages of it that were dealt with."""
    position: int = -1
    """Of the last one; through an exchange, how many queues have it."""
    confirming: int = 0
    """Through an exchange: how many of them are to confirm it."""
    passed_over: bool = False
    alarm: Alarm | None = None

    @property
    def next(self) -> int:
        """The number behind it."""
        return self.command.value + self.command.count


class Producer:
    def __init__(self, served: Served, destination: Destination) -> None:
        self._served = served
        self._to = destination
        self._waiting: deque[Publish] = deque()
        self._refused: dict[int, Error] = {}
        """By the number behind what was refused, until its program says that it knows of it: no
        piece behind it comes after that."""
        self._ticket: int | None = None
        self._full: Any = None
        """The queue, as C knows it, of whose room the ticket tells."""
        self._nap = 0.0
        """Until the next try; 0: it is not the arena that has no room."""
        self._next_try: Alarm | None = None
        """Instead of the ticket: no bell tells of room in the arena."""

    # --- publishing ---------------------------------------------------------------------------

    def publish(self, command: Command) -> None:
        if self._falls(command):
            self._refuse(Publish(command, 0.0), self._refused[command.value])
            return
        self._refused.pop(command.value + command.count, None)  # what is said again may go in
        level = LEVEL_NUMBERS[command.demand]
        self._to.check(level)
        if command.value < 1:
            raise InvalidArgument("messages of a producer are numbered from 1 on")
        buffer = ffi.from_buffer(command.body)
        count = lib.sb_records_number(buffer, len(buffer), command.value - 1)
        if count != command.count:
            raise InvalidArgument(f"a publish of {command.count} messages has {count}")
        self._waiting.append(Publish(command, until(command)))
        if len(self._waiting) == 1:
            self._go_on()

    def decided(self, first: int, count: int) -> None:
        """These numbers will not come."""
        self._refused.pop(first + count, None)
        self._to.give_up(first, count)
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting:
            publish = self._waiting[0]
            try:
                is_done = self._pour(publish)
            except Error as error:
                self._refuse(publish, error)
                continue
            if not is_done:
                self._wait_for_room(publish)
                return
            if self._waiting and self._waiting[0] is publish:
                self._waiting.popleft()
                try:
                    self._published(publish)
                except Error as error:  # its queue was deleted just now
                    self._served.refuse(publish.command, error, published=publish.done)

    def _pour(self, publish: Publish) -> bool:
        """False: the next message finds no room, or what was refused before it is not decided."""
        told = self._pour_rest(publish)
        while told.has_stopped and told.code == DUPLICATE:
            self._pass_over(publish)
            told = self._pour_rest(publish)
        if told.has_stopped:
            code, why = told.code if told.code < OK else TOO_MANY_OPEN, detail_of(told.code)
            if code == TOO_MANY_OPEN and self._refused:  # of which its program is about to know
                return False
            raise error_for(code, f"publishing to {self._to}", detail=why)
        if told.refused:  # an exchange does not stop there
            code = next(each for each in told.view if each < OK and each != DUPLICATE)
            raise error_for(code, f"publishing to {self._to}", detail=detail_of(code))
        if told.is_full and publish.until <= time.monotonic():
            raise error_for(FULL, f"publishing to {self._to}")
        return not told.is_full

    def _pour_rest(self, publish: Publish) -> Poured:
        known = self._to.position()
        told = self._to.pour(memoryview(publish.command.body)[publish.offset :])
        self._nap = longer(self._nap) if told.lacks_memory else 0.0
        publish.offset += told.bytes
        self._note(publish, told, known)
        publish.done += len(told.view)
        return told

    def _pass_over(self, publish: Publish) -> None:
        """The queue has, or had, a message with the id of the next one."""
        self._to.pass_over(publish.command.value + publish.done)
        record = memoryview(publish.command.body)[publish.offset :]
        length = int.from_bytes(record[RECORD_LENGTH_AT : RECORD_LENGTH_AT + 4], "little")
        publish.offset += RECORD_HEAD_BYTES + (length + 7 & -8)
        publish.done += 1
        publish.passed_over = True

    def _note(self, publish: Publish, told: Poured, known: int) -> None:
        if not told.view:
            return
        last = told.view[-1]
        if last >= 0:
            publish.position = last
        elif last == DUPLICATE and known < publish.command.value:
            publish.passed_over = True

    def _refuse(self, publish: Publish, error: Error) -> None:
        """And what is behind it of the same call, before anybody is told: that lets others come."""
        self._refused[publish.next] = error.with_traceback(None)
        refused, waiting = [publish], self._waiting
        self._waiting = deque()
        for each in waiting:
            if self._falls(each.command):
                self._refused[each.next] = error
                refused.append(each)
            elif each is not publish:
                self._waiting.append(each)
        for each in refused:
            if each.alarm is not None:
                each.alarm.cancel()
            self._served.refuse(each.command, error, published=each.done)

    def _falls(self, command: Command) -> bool:
        return command.verb is Verb.PUBLISH_BEHIND and command.value in self._refused

    # --- room ---------------------------------------------------------------------------------

    def _wait_for_room(self, publish: Publish) -> None:
        service = self._served.service
        if publish.alarm is None:
            publish.alarm = service.alarms.at(publish.until, lambda: self._late(publish))
        if self._ticket is not None or self._next_try is not None:
            return
        if self._nap:
            self._next_try = service.alarms.at(time.monotonic() + self._nap, self._again)
        elif self._to.full is not None:
            self._full = self._to.full
            self._ticket = service.sleeper.watch(self._full, ROOM, ANY, self._rung)

    def _again(self) -> None:
        self._next_try = None
        self._go_on()

    def _rung(self) -> None:
        self._ticket = None
        before = len(self._waiting)
        self._go_on()
        if len(self._waiting) < before:  # there may be room for others, too
            lib.sb_pass_on(self._full, ROOM)

    def _late(self, publish: Publish) -> None:
        if publish in self._waiting:
            self._refuse(publish, error_for(FULL, f"publishing to {self._to}"))
            self._forget_room()  # what was behind it may wait for that of another queue
            self._go_on()

    def _forget_room(self) -> None:
        if self._ticket is not None:
            self._served.service.sleeper.forget(self._ticket, self._full, ROOM, ANY)
            self._ticket = None
        if self._next_try is not None:
            self._next_try.cancel()
            self._next_try = None

    # --- confirming ---------------------------------------------------------------------------

    def _published(self, publish: Publish) -> None:
        if publish.alarm is not None:
            publish.alarm.cancel()
        level = LEVEL_NUMBERS[publish.command.demand]
        alone = publish.command.count == 1  # else the number is that of the last one
        nobody_has_it = self._to.tells_how_many and alone and publish.position == 0
        asks = level != CONFIRM_SHM and not nobody_has_it
        queues = self._to.confirming(level, publish.command.body) if asks else []
        if not queues:
            self._answer(publish, CONFIRM_SHM)
            return
        if self._to.tells_how_many:
            publish.confirming = len(queues)
        alarms = self._served.service.alarms
        answer = partial(self._answer, publish)
        told = in_time(alarms, publish.until, answer, self._served.session_is_over)
        self._to.confirm(queues, publish.position, level, told)

    def _answer(self, publish: Publish, level: int) -> None:
        command = publish.command
        if level < OK:
            error = error_for(level, f"publishing to {self._to}")
            self._served.refuse(command, error, published=publish.done)
            return
        seen = PASSED_OVER if publish.passed_over else SEEN
        code = OK if publish.position >= 0 else seen
        value = publish.confirming or max(0, publish.position)
        self._served.done(command, code, value, LEVEL_WORDS[level])

    def leave(self) -> None:
        """Its program has left it, to delete what it publishes to: what waits for room is told."""
        waiting = tuple(self._waiting)
        self.close(forgets=False)
        for each in waiting:
            error = NotFound(f"publishing to {self._to}: its program has left it")
            self._served.refuse(each.command, error, published=each.done)

    def close(self, *, forgets: bool) -> None:
        self._forget_room()
        for publish in self._waiting:
            if publish.alarm is not None:
                publish.alarm.cancel()
        self._waiting.clear()
        self._to.close(forgets=forgets)
