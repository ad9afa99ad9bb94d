"""One end of a connection: its machine, and what carries out what the machine says."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Protocol

from shmbroker.ipc.base.errors import Error
from shmbroker.netbridge.carrier.source import Source
from shmbroker.netbridge.carrier.target import Target
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.action import (
    Action,
    Became,
    BeginHistory,
    CloseSink,
    Ended,
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
from shmbroker.netbridge.wire.codec import decode, encode
from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import TargetKind

TURNS_MAX = 16
"""Steps of a machine in a turn of the thread; then others have theirs."""
AGAIN_SECONDS = 0.1
"""When a message is set aside again for which there was no room."""


class Owner(Protocol):
    """A link or a listener."""

    def send(self, end: End, parts: list[Body]) -> bool:
        """False: the connection is gone."""

    def became(self, end: End, state: State) -> None: ...

    def waits(self, end: End, live: str) -> None: ...

    def ended(self, end: End, how: Ending) -> None: ...

    def told(self, what: str, detail: str) -> None:
        """For the log."""


class End:
    def __init__(self, thread: NetworkThread, machine: Machine, owner: Owner) -> None:
        self.thread = thread
        self.machine = machine
        self.owner = owner
        self.sources: dict[int, Source] = {}
        self.targets: dict[int, Target] = {}
        self._waiting: deque[Action] = deque()
        self._is_busy = False
        self._aside: dict[tuple[int, int], float] = {}
        """Target and position of what finds no room in the dead-letter queue, and when again."""

    # --- what happens to it -------------------------------------------------------------------

    @property
    def due(self) -> float:
        if self.machine.has_work:
            return 0.0
        return min((self.machine.deadline, *self._aside.values()))

    def arrived(self, parts: list[Body]) -> None:
        try:
            number, frame = decode(parts, self.machine.times.max_frame_size)
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
        turns = 0
        while self._waiting or (self.machine.has_work and turns < TURNS_MAX):
            if not self._waiting:
                turns += 1
                self._waiting.extend(self.machine.turn(time.monotonic()))
                continue
            action = self._waiting.popleft()
            try:
                self._carry_out(action)
            except Error as error:  # a queue was deleted, a gate was taken from us, ...
                self.does(self.machine.malformed(Malformed(str(error)), time.monotonic()))
        self._is_busy = False

    def _carry_out(self, action: Action) -> None:
        if isinstance(action, Send):
            if not self.owner.send(self, encode(action.frame, action.number)):
                self.lost()
        elif isinstance(action, Became):
            self.owner.became(self, action.state)
        elif isinstance(action, Waits):
            self.owner.waits(self, action.live)
        elif isinstance(action, Ended):
            self.close()
            self.owner.ended(self, action.ending)
        elif isinstance(action, Line):
            self.owner.told(action.alert.value, action.detail)
        elif isinstance(action, (OpenSink, Pour, Skip, CloseSink)):
            self._of_target(action)
        else:
            self._of_source(action)

    def _of_source(self, action: Action) -> None:
        now = time.monotonic()
        if isinstance(action, Seek):
            self.sources[action.target].seek(action.position)
        elif isinstance(action, Read):
            batch = self.sources[action.target].read(action.messages, action.bytes)
            self.does(self.machine.read(action.target, batch, now))
        elif isinstance(action, Release):
            self.sources[action.target].retire(action.end)
            self.does(self.machine.released(action.target, action.end, now))
        elif isinstance(action, SetAside):
            self.owner.told("refused by the target", f"message {action.position}: {action.reason}")
            self._set_aside(action.target, action.position)
        elif isinstance(action, BeginHistory):
            self.owner.told("a target knows more than its queue ever had", "nothing is sent to it")
        elif isinstance(action, Unserved):
            self.owner.told("not served there", action.reason)

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
            told = target.pour(action.records)
            now = time.monotonic()
            self.does(self.machine.poured(number, told, now))
            self.does(self.machine.confirmed(number, target.confirmed, now))
        elif isinstance(action, Skip):
            self.targets[number].skip(action.end)
        elif number in self.targets:
            self.targets.pop(number).close(forgets=action.forgets)

    def _open(self, said: OpenSink) -> None:
        number, now = said.target, time.monotonic()
        if said.kind is not TargetKind.QUEUE:
            self.does(self.machine.unopened(number, "links pour into queues only", now))
            return
        try:
            target = self.targets[number] = Target(
                self.thread.broker,
                self.thread.sleeper,
                said,
                partial(self._confirmed, number),
                partial(self._room, number),
            )
        except Error as error:
            self.does(self.machine.unopened(number, str(error), now))
        else:
            largest = self.machine.times.max_message_size
            self.does(self.machine.opened(number, target.mark, target.confirmed, largest, now))

    def close(self) -> None:
        """Let go of the rings; marks and gates stay."""
        self._aside.clear()
        for source in self.sources.values():
            source.close()
        self.sources.clear()
        for target in self.targets.values():
            target.close(forgets=False)
        self.targets.clear()
