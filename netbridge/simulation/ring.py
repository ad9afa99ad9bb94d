"""Rings at both ends, with the contract of the follower and of the sink, over a disk.

What is in shared memory outlives a process, and not the power.  What is synced outlives both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from shmbroker.netbridge.link.inflow import Poured
from shmbroker.netbridge.link.outflow import Batch
from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.record import Message, records

Told: TypeAlias = Callable[[], None]


@dataclass(slots=True)
class Store:
    """What a source has of a ring: in shared memory, or on its disk."""

    messages: dict[int, Message] = field(default_factory=dict)
    tail: int = 0
    gate: int = 0
    aside: dict[int, str] = field(default_factory=dict)

    def copy(self) -> Store:
        return replace(self, messages=dict(self.messages), aside=dict(self.aside))


class SourceRing:
    """A durable queue, behind whose gate a link reads what is synced."""

    def __init__(self, name: str, disk: Disk) -> None:
        self.name = name
        self.disk = disk
        self.memory = Store()
        self.synced = Store()
        self.history = 1
        self.begun = 0
        self.cursor = 0
        self.changed: Told = lambda: None
        """Something was synced."""

    def publish(self, message: Message, gap: int, confirmed: Told) -> None:
        position = self.memory.tail + gap
        self.memory.messages[position] = message
        self.memory.tail = position + 1

        def effect() -> None:
            self.synced.messages[position] = message
            self.synced.tail = position + 1
            confirmed()
            self.changed()

        self.disk.write(effect)

    def read(self, most: int, size: int) -> Batch | None:
        """As a follower: at least one message, if there is one."""
        read: list[bytes] = []
        first = end = self.cursor
        left = size
        for position in range(self.cursor, self.synced.tail):
            message = self.memory.messages.get(position)
            if message is None or position in self.memory.aside:
                continue
            record = message.record(position)
            if read and (len(read) >= most or len(record) > left):
                break
            first = position if not read else first
            read.append(record)
            end, left = position + 1, left - len(record)
        if not read:
            return None
        self.cursor = end
        return Batch(first, end, len(read), b"".join(read))

    def release(self, end: int) -> None:
        self.memory.gate = max(self.memory.gate, end)

        def effect() -> None:
            self.synced.gate = max(self.synced.gate, end)
            self.changed()

        self.disk.write(effect)

    @property
    def going_aside(self) -> set[int]:
        """What a crash would take back."""
        return self.memory.aside.keys() - self.synced.aside.keys()

    def set_aside(self, position: int, reason: str) -> None:
        self.memory.aside[position] = reason

        def effect() -> None:
            self.synced.aside[position] = reason
            self.changed()

        self.disk.write(effect)

    def loses_power(self) -> None:
        self.memory = self.synced.copy()

    def restore(self, copy: Store) -> None:
        """From a copy: positions will be used twice, so it is another history."""
        self.synced = copy.copy()
        self.memory = copy.copy()
        self.history += 1
        self.begun = self.memory.gate


@dataclass(frozen=True, slots=True)
class Entry:
    """Of a target's journal.  Without a message: it was passed; at -1 the origin was forgotten."""

    origin: bytes
    position: int
    message: Message | None
    redelivered: bool = False


class TargetRing:
    """A durable queue, into which a sink pours."""

    def __init__(self, name: str, disk: Disk, room: int) -> None:
        self.name = name
        self.disk = disk
        self.room = room
        self.log: list[Entry] = []
        self.synced = 0
        self.consumed = 0
        self.marks: dict[bytes, int] = {}
        self.seen = 0
        self.changed: Told = lambda: None

    def confirmed(self, origin: bytes) -> int:
        """Below it all of this origin is synced."""
        for entry in reversed(self.log[: self.synced]):
            if entry.origin == origin:
                return entry.position + 1
        return 0

    def pour(self, origin: bytes, buffer: bytes | memoryview, redelivered: bool) -> Poured:
        size = done = 0
        mark = self.marks.get(origin, 0)
        told = Poured(0, 0, mark)
        for length, position, message in records(buffer):
            if position < mark:
                self.seen += 1
            elif message.is_refused:
                told = Poured(0, 0, 0, refused="not wanted", position=position, skip=length)
                break
            elif len(self.log) - self.consumed >= self.room:
                told = Poured(0, 0, 0, is_full=True)
                break
            else:
                self.log.append(Entry(origin, position, message, redelivered))
                mark = position + 1
            size, done = size + length, done + 1
        self.marks[origin] = mark
        self._write()
        return replace(told, bytes=size, messages=done, end=mark)

    def forget(self, origin: bytes) -> None:
        if self.marks.pop(origin, 0):
            self.log.append(Entry(origin, -1, None))
            self._write()

    def skip(self, origin: bytes, end: int) -> None:
        if end > self.marks.get(origin, 0):
            self.marks[origin] = end
            self.log.append(Entry(origin, end - 1, None))
            self._write()

    def _write(self) -> None:
        end = len(self.log)

        def effect() -> None:
            self.synced = max(self.synced, end)
            self.changed()

        self.disk.write(effect)

    def consume(self, most: int) -> None:
        """What is synced may be taken."""
        self.consumed = min(self.synced, self.consumed + most)

    def loses_power(self) -> None:
        del self.log[self.synced :]
        self.marks = {}
        for entry in self.log:
            if entry.position < 0:
                self.marks.pop(entry.origin, None)
            else:
                self.marks[entry.origin] = entry.position + 1
