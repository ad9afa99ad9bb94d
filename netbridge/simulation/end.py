"""An end of a link in the simulation: carries out what its machine says, over rings and network."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from shmbroker.netbridge.link.action import (
    Action,
    Alert,
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
)
from shmbroker.netbridge.link.ending import Reason
from shmbroker.netbridge.link.handshake import Far, Near
from shmbroker.netbridge.link.machine import Machine
from shmbroker.netbridge.link.origin import origin_of
from shmbroker.netbridge.link.outflow import Outlet
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.simulation.history import History
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import Connection
from shmbroker.netbridge.simulation.ring import SourceRing, TargetRing
from shmbroker.netbridge.wire.codec import decode, encode
from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import Level, Role, TargetKind

TIMES = LinkTimes(
    window_size=2048, window_messages=8, max_frame_size=64 << 10, max_message_size=256 << 10
)
FULL_SECONDS = 0.02
ROUNDING_SECONDS = 1e-6
"""Sums of floats: a tick that comes before its deadline would come again at the same time."""


@dataclass(frozen=True, slots=True)
class Secret:
    """Of the world's links: prover and verifier."""

    challenge: bytes

    def answer(self, challenge: bytes) -> bytes:
        return blake2b(challenge, key=b"the word").digest()

    def claim(self, user: str, role: Role) -> None:
        """There is one secret for all."""

    def check(self, proof: bytes) -> bool:
        return proof == self.answer(self.challenge)


class Seen(Protocol):
    """What is seen of ends."""

    lines: list[Line]

    def ended(self, now: float, reason: Reason) -> None: ...


class LinkEnd:
    def __init__(self, host: Host, handshake: Near | Far, seen: Seen) -> None:
        self.host = host
        self.seen = seen
        self.machine = Machine(TIMES, handshake, host.clock)
        self.connection: Connection | None = None
        self.side = 0 if isinstance(handshake, Near) else 1
        self._waiting: deque[Action] = deque()
        self._is_busy = False
        self._ticks_at = float("inf")

    # --- what happens to it -------------------------------------------------------------------

    def joined(self, connection: Connection) -> None:
        self.connection = connection
        self.does(self.machine.connected(self.host.clock))

    def arrived(self, message: Body) -> None:
        try:
            number, frame = decode(message, TIMES.max_frame_size)
        except Malformed as error:
            self.does(self.machine.malformed(error, self.host.clock))
        else:
            now, day_ms = self.host.clock, self.host.day_ms
            self.does(self.machine.received(number, frame, now, day_ms))

    def lost(self) -> None:
        self.does(self.machine.disconnected(self.host.clock))

    def _tick(self) -> None:
        self._ticks_at = float("inf")
        now = self.host.clock
        self.does(self.machine.tick(now) if now >= self.machine.deadline else [])

    # --- what it does -------------------------------------------------------------------------

    def does(self, actions: Iterable[Action]) -> None:
        """Carry out, one action after the other, and what comes of it."""
        self._waiting.extend(actions)
        if self._is_busy:
            return
        self._is_busy = True
        while self._waiting or self.machine.has_work:
            if self._waiting:
                self.carry_out(self._waiting.popleft())
            else:
                self._waiting.extend(self.machine.turn(self.host.clock))
        self._is_busy = False
        self._wake()

    def _wake(self) -> None:
        due = self.machine.deadline - self.host.jumped + ROUNDING_SECONDS
        if due < self._ticks_at:
            self._ticks_at = due
            self.host.at(due, self._tick)

    def carry_out(self, action: Action) -> None:
        if isinstance(action, Send):
            if self.connection is not None:
                self.connection.send(self.side, encode(action.frame, action.number))
        elif isinstance(action, Ended):
            self.host.world.tell(f"{self.host.name}: {action.ending.reason.value}")
            self.seen.ended(self.host.world.now, action.ending.reason)
            if self.connection is not None:
                self.connection.close(self.side)
            self.has_ended(action.ending.reason)
        elif isinstance(action, Line) and action.alert is not Alert.CLOCKS:
            self.host.world.tell(f"{self.host.name}: {action.alert.name} {action.detail}")
            self.seen.lines.append(action)

    def has_ended(self, reason: Reason) -> None:
        """For its owner."""


class SourceEnd(LinkEnd):
    def __init__(
        self,
        host: Host,
        handshake: Near,
        history: History,
        rings: list[SourceRing],
        sent: dict[int, int],
        ended: Callable[[Reason], None],
    ) -> None:
        super().__init__(host, handshake, history)
        self.history = history
        self.rings = rings
        self.sent = sent
        """By target: below it messages may have been sent."""
        self.tell_ended = ended
        self.aside = [ring.going_aside for ring in rings]
        node, link = handshake.ours.node, handshake.wish.link
        for target, ring in enumerate(rings):
            ring.changed = self._changed
            ring.cursor = ring.memory.gate
            outlet = Outlet(
                target=target,
                kind=TargetKind.QUEUE,
                name=ring.name,
                origin=origin_of(node, link, ring.name.encode(), ring.history),
                level=Level.DISK,
                confirmed=ring.memory.gate,
                released=ring.synced.gate,
                sent=sent.get(target, ring.synced.tail),
                end=ring.synced.tail,
                begun=ring.begun,
                aside=tuple(sorted(ring.going_aside)),
            )
            self.does(self.machine.open(outlet, host.clock))

    def _changed(self) -> None:
        self.host.at(self.host.world.now, self._look)

    def _look(self) -> None:
        for target, ring in enumerate(self.rings):
            self.machine.news(target)
            self.does(self.machine.released(target, ring.synced.gate, self.host.clock))
            for position in self.aside[target] & ring.synced.aside.keys():
                self.aside[target].remove(position)
                self.does(self.machine.dealt(target, position, self.host.clock))

    def carry_out(self, action: Action) -> None:
        clock = self.host.clock
        if isinstance(action, Seek):
            self.rings[action.target].cursor = action.position
            self.history.seeks(self.rings[action.target], action.position)
        elif isinstance(action, Read):
            batch = self.rings[action.target].read(action.messages, action.bytes)
            if batch is not None:
                self.sent[action.target] = max(self.sent.get(action.target, 0), batch.end)
            self.does(self.machine.read(action.target, batch, clock))
        elif isinstance(action, Release):
            self.history.releases(self.rings[action.target], action.end)
            self.rings[action.target].release(action.end)
        elif isinstance(action, SetAside):
            self.aside[action.target].add(action.position)
            self.rings[action.target].set_aside(action.position, action.reason)
        elif isinstance(action, BeginHistory):
            self.history.fails(f"a new history of {self.rings[action.target].name} is wanted")
        else:
            super().carry_out(action)

    def has_ended(self, reason: Reason) -> None:
        for ring in self.rings:
            if reason is Reason.STOPPED and ring.synced.gate >= ring.cursor:
                ring.begun = ring.memory.gate
        self.tell_ended(reason)


class TargetEnd(LinkEnd):
    def __init__(
        self, host: Host, handshake: Far, history: History, rings: dict[str, TargetRing]
    ) -> None:
        super().__init__(host, handshake, history)
        self.history = history
        self.rings = rings
        self.sinks: dict[int, tuple[TargetRing, bytes]] = {}

    def has_confirmed(self) -> None:
        """A ring was synced further."""
        for target, (ring, origin) in list(self.sinks.items()):
            end = ring.confirmed(origin)
            self.does(self.machine.confirmed(target, end, self.host.clock))

    def carry_out(self, action: Action) -> None:
        clock = self.host.clock
        if isinstance(action, OpenSink):
            ring = self.rings[action.name]
            self.sinks[action.target] = ring, action.origin
            mark = ring.marks.get(action.origin, 0)
            confirmed = min(mark, ring.confirmed(action.origin))
            largest = TIMES.max_message_size // 2
            self.does(self.machine.opened(action.target, mark, confirmed, largest, clock))
        elif isinstance(action, Pour):
            self._pour(action)
        elif isinstance(action, Skip):
            ring, origin = self.sinks[action.target]
            ring.skip(origin, action.end)
        elif isinstance(action, CloseSink):
            closed = self.sinks.pop(action.target, None)
            if action.forgets and closed is not None:
                closed[0].forget(closed[1])
        else:
            super().carry_out(action)

    def _pour(self, action: Pour) -> None:
        ring, origin = self.sinks[action.target]
        told = ring.pour(origin, action.records, action.redelivered)
        flow = self.machine.inflows[action.target]
        held = [len(each.records) for each in flow.held if each.records]
        self.history.holds(held, TIMES)
        self.does(self.machine.poured(action.target, told, self.host.clock))
        if told.is_full:
            self.host.later(FULL_SECONDS, lambda: self._again(action.target))

    def _again(self, target: int) -> None:
        self.does(self.machine.room(target, self.host.clock))
