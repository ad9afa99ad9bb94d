"""One end of a connection: its machine, and what carries out what the machine says."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Final, Protocol

from shmbroker.ipc.base.errors import Error
from shmbroker.netbridge.carrier.opening import Opening
from shmbroker.netbridge.carrier.source import Source
from shmbroker.netbridge.carrier.target import Target
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.action import (
    Action,
    Became,
    BeginHistory,
    CloseSink,
    Ended,
    Heard,
    Line,
    OpenSink,
    Pour,
    Read,
    Release,
    Seek,
    Send,
    SetAside,
    Skip,
    Unserved,
    Waits,
)
from shmbroker.netbridge.link.ending import Ending, State
from shmbroker.netbridge.link.machine import Machine
from shmbroker.netbridge.link.outflow import Batch, Outflow
from shmbroker.netbridge.wire.codec import decode, encode
from shmbroker.netbridge.wire.frame import Body, Frame
from shmbroker.netbridge.wire.malformed import Malformed

TURNS_MAX = 16
"""Steps of a machine in a turn of the thread; then others have theirs."""
OF_SOURCE: Final = (Read, Release, Seek, SetAside, BeginHistory, Unserved)
OF_TARGET: Final = (Pour, OpenSink, Skip, CloseSink)
AGAIN_SECONDS = 0.1
"""When a message is set aside again for which there was no room."""


class Owner(Protocol):
    """A link or a listener."""

    def wakes(self, end: End) -> None:
        """When the end wants to be woken may have changed."""

    def send(self, end: End, message: bytes) -> bool:
        """False: the connection is gone."""

    def became(self, end: End, state: State) -> None: ...

    def waits(self, end: End, live: str) -> None: ...

    def ended(self, end: End, how: Ending) -> None: ...

    def unserved(self, end: End, reason: str) -> None:
        """The far end does not open a target."""

    def told(self, what: str, detail: str) -> None:
        """For the log."""

    def heard(self, end: End, frame: Frame) -> None:
        """Of the session of a program."""


class Meter(Protocol):
    """Counts what a link ships."""

    def read(self, flow: Outflow, batch: Batch) -> None: ...

    def released(self, flow: Outflow) -> None: ...

    def set_aside(self) -> None: ...


class End:
    def __init__(
        self, thread: NetworkThread, machine: Machine, owner: Owner, meter: Meter | None = None
    ) -> None:
        self.thread = thread
        self.machine = machine
        self.owner = owner
        self.meter = meter
        self.sources: dict[int, Source] = {}
        self.targets: dict[int, Target] = {}
        self._opening: dict[int, Opening] = {}
        self._waiting: deque[Action] = deque()
        self._is_busy = False
        self._aside: dict[tuple[int, int], float] = {}
        """Target and position of what finds no room in the dead-letter queue, and when again."""
        self.due = machine.deadline
        """When it wants to be woken."""

    # --- what happens to it -------------------------------------------------------------------

    def arrived(self, message: Body) -> None:
        try:
            number, frame = decode(message, self.machine.times.max_frame_size)
        except Malformed as error:
            self.does(self.machine.malformed(error, time.monotonic()))
        else:
            day_ms = time.time_ns() // 1_000_000
            self.does(self.machine.received(number, frame, time.monotonic(), day_ms))

    def woken(self, now: float) -> None:
        for (target, position), at in list(self._aside.items()):
            if at <= now:
                self._set_aside(target, position)
        self.does(self.machine.tick(now) if now >= self.machine.deadline else [])

    def connected(self) -> None:
        self.does(self.machine.connected(time.monotonic()))

    def lost(self) -> None:
        self.does(self.machine.disconnected(time.monotonic()))

    def say(self, frame: Frame) -> None:
        """Of the session that is attached to it."""
        self.does(self.machine.say(frame, time.monotonic()))

    def news(self, target: int) -> None:
        self.machine.news(target)
        self.does([])

    def _confirmed(self, target: int, end: int) -> None:
        self.does(self.machine.confirmed(target, end, time.monotonic()))

    def _room(self, target: int) -> None:
        self.does(self.machine.room(target, time.monotonic()))

    # --- what it does -------------------------------------------------------------------------

    def does(self, actions: Iterable[Action]) -> None:
        """Carry out, one action after the other, and what comes of it."""
        self._waiting.extend(actions)
        if self._is_busy:
            return
        self._is_busy = True
        machine, waiting, turns = self.machine, self._waiting, 0
        while True:
            while waiting:
                try:
                    self._carry_out(waiting.popleft())
                except Error as error:  # a queue was deleted, a gate was taken from us, ...
                    self.does(machine.malformed(Malformed(str(error)), time.monotonic()))
            has_work = machine.has_work
            if not has_work or turns == TURNS_MAX:
                break
            turns += 1
            waiting.extend(machine.turn(time.monotonic()))
        self._is_busy = False
        self.due = 0.0 if has_work else min((machine.deadline, *self._aside.values()))
        self.owner.wakes(self)

    def _carry_out(self, action: Action) -> None:
        if isinstance(action, Send):
            if not self.owner.send(self, encode(action.frame, action.number)):
                self.lost()
        elif isinstance(action, OF_SOURCE):
            self._of_source(action)
        elif isinstance(action, OF_TARGET):
            self._of_target(action)
        elif isinstance(action, Heard):
            self.owner.heard(self, action.frame)
        elif isinstance(action, Became):
            self.owner.became(self, action.state)
        elif isinstance(action, Waits):
            self.owner.waits(self, action.live)
        elif isinstance(action, Ended):
            self.close()
            self.owner.ended(self, action.ending)
        elif isinstance(action, Line):
            self.owner.told(action.alert.value, action.detail)

    def _of_source(self, action: Action) -> None:
        now = time.monotonic()
        if isinstance(action, Seek):
            self.sources[action.target].seek(action.position)
        elif isinstance(action, Read):
            batch = self.sources[action.target].read(action.messages, action.bytes)
            self.does(self.machine.read(action.target, batch, now))
            if self.meter is not None and batch is not None:
                self.meter.read(self.machine.outflows[action.target], batch)
        elif isinstance(action, Release):
            self.sources[action.target].retire(action.end)
            self.does(self.machine.released(action.target, action.end, now))
            if self.meter is not None:
                self.meter.released(self.machine.outflows[action.target])
        elif isinstance(action, SetAside):
            self.owner.told("refused by the target", f"message {action.position}: {action.reason}")
            if self.meter is not None:
                self.meter.set_aside()
            self._set_aside(action.target, action.position)
        elif isinstance(action, BeginHistory):
            self.owner.told("a target knows more than its queue ever had", "nothing is sent to it")
        elif isinstance(action, Unserved):
            self.owner.unserved(self, action.reason)

    def _set_aside(self, target: int, position: int) -> None:
        if self.sources[target].set_aside(position):
            self._aside.pop((target, position), None)
            self.does(self.machine.dealt(target, position, time.monotonic()))
        else:
            self._aside[target, position] = time.monotonic() + AGAIN_SECONDS

    def _of_target(self, action: OpenSink | Pour | Skip | CloseSink) -> None:
        number = action.target
        if isinstance(action, OpenSink):
            self._open(action)
        elif isinstance(action, Pour):
            target = self.targets[number]
            before = target.confirmed
            told = target.pour(action.records)
            now = time.monotonic()
            self.does(self.machine.poured(number, told, now))
            if target.confirmed > before:
                self.does(self.machine.confirmed(number, target.confirmed, now))
        elif isinstance(action, Skip):
            self.targets[number].skip(action.end)
        elif number in self._opening:
            self._drop_opening(number)
        elif number in self.targets:
            self.targets.pop(number).close(forgets=action.forgets)

    def _open(self, said: OpenSink) -> None:
        opening = Opening(self.thread.broker, said, self.machine.times.origin_retention)
        self._opening[said.target] = opening
        self.thread.worker.do(opening.begin, partial(self._opened, opening), of=said.origin)

    def _opened(self, opening: Opening, failure: Exception | None) -> None:
        number, now = opening.said.target, time.monotonic()
        if self._opening.get(number) is not opening:
            return  # nobody wants it any more: the worker drops it
        del self._opening[number]
        if isinstance(failure, Error):
            self.does(self.machine.unopened(number, str(failure), now))
            return
        if failure is not None:
            raise failure
        target = self.targets[number] = Target(
            self.thread.sleeper,
            opening,
            partial(self._confirmed, number),
            partial(self._room, number),
        )
        largest = self.machine.times.max_message_size
        self.does(self.machine.opened(number, target.mark, target.confirmed, largest, now))

    def _drop_opening(self, number: int) -> None:
        opening = self._opening.pop(number)
        self.thread.worker.do(opening.drop, lambda _: None, of=opening.said.origin)

    def close(self) -> None:
        """Let go of the rings; marks and gates stay."""
        self._aside.clear()
        for number in tuple(self._opening):
            self._drop_opening(number)
        for source in self.sources.values():
            source.close()
        self.sources.clear()
        for target in self.targets.values():
            target.close(forgets=False)
        self.targets.clear()
