"""A process with lines to others: a connection each, with heartbeats, made again when lost."""

from __future__ import annotations

from abc import ABC, abstractmethod

from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import Connection, Message
from shmbroker.netbridge.simulation.world import Step

BEAT_SECONDS = 0.2
SILENCE_SECONDS = 0.6
ROUNDING_SECONDS = 1e-6
BEAT = "beat"


class Line:
    """One end of a connection."""

    def __init__(self, process: Process, other: str) -> None:
        self.process = process
        self.host = process.host
        self.other = other
        self.connection: Connection | None = None
        self.side = 0
        self.heard_at = self.host.clock

    def joined(self, connection: Connection, side: int) -> None:
        self.connection, self.side = connection, side

    def say(self, message: Message) -> None:
        if self.connection is not None:
            self.connection.send(self.side, message)

    def arrived(self, message: Message) -> None:
        if self.process.lines.get(self.other) is self:
            self.heard_at = self.host.clock
            if message is not BEAT:
                self.process.heard(self.other, message)

    def lost(self) -> None:
        connection = self.connection
        is_closed = connection is not None and connection.closed_by == 1 - self.side
        self.ends(is_closed=is_closed)

    def ends(self, *, is_closed: bool) -> None:
        if self.process.lines.get(self.other) is self:
            del self.process.lines[self.other]
            self.process.disconnected(self.other, is_closed=is_closed)

    def close(self) -> None:
        """It is silent, or another one has taken its place."""
        if self.connection is not None:
            self.connection.close(self.side)
        self.ends(is_closed=False)


class Process(ABC):
    """Of one life."""

    def __init__(self, host: Host, disk: Disk) -> None:
        self.host, self.disk = host, disk
        self.name = host.name
        self.life = host.life
        self.lines: dict[str, Line] = {}
        self._ticks_at = float("inf")

    def soon(self, step: Step) -> None:
        """If this process runs still."""
        if self.life == self.host.life:
            self.host.at(self.host.world.now, step)

    def begin(self) -> None:
        self._beat()

    def _beat(self) -> None:
        for line in list(self.lines.values()):
            if self.host.clock - line.heard_at > SILENCE_SECONDS:
                line.close()
            else:
                line.say(BEAT)
        self.host.later(BEAT_SECONDS, self._beat)

    def say(self, other: str, message: Message) -> None:
        if other in self.lines:
            self.lines[other].say(message)

    def connect(self, line: Line) -> None:
        former = self.lines.get(line.other)
        if former is not None:
            former.close()
        self.lines[line.other] = line
        self.connected(line.other)

    def wake(self, deadline: float) -> None:
        """Tick at this time of its clock."""
        if deadline == float("inf"):
            return
        due = self.host.when(deadline) + ROUNDING_SECONDS
        if due < self._ticks_at:
            self._ticks_at = due
            self.host.at(due, self._tick)

    def _tick(self) -> None:
        self._ticks_at = float("inf")
        self.tick()

    @abstractmethod
    def connected(self, other: str) -> None: ...
    @abstractmethod
    def disconnected(self, other: str, *, is_closed: bool) -> None: ...
    @abstractmethod
    def heard(self, other: str, message: Message) -> None: ...
    @abstractmethod
    def tick(self) -> None: ...
