"""What a broker has, in memory and on its disk: queues, those that links ship, and marks.

A change is one record: a message that goes into several queues is in all of them or in none, and
what a stream brings is there together with its mark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.kept import Kept
from shmbroker.netbridge.simulation.peers.message import Message


@dataclass(slots=True)
class Ring:
    """A queue that a link ships: positions are not used twice."""

    messages: dict[int, Message] = field(default_factory=dict)
    tail: int = 0
    gate: int = 0
    """Below it all is at the other end."""

    def add(self, message: Message) -> None:
        self.messages[self.tail] = message
        self.tail += 1

    def release(self, end: int) -> None:
        self.gate = max(self.gate, end)
        for position in [each for each in self.messages if each < end]:
            del self.messages[position]

    def drop(self, position: int) -> None:
        self.messages.pop(position, None)

    def copied(self) -> Ring:
        return Ring(dict(self.messages), self.tail, self.gate)


@dataclass(slots=True)
class Content:
    queues: dict[str, list[Message]] = field(default_factory=dict)
    """Those that programs consume."""
    taken: dict[str, list[int]] = field(default_factory=dict)
    """Of each: what was acknowledged, by number."""
    rings: dict[str, Ring] = field(default_factory=dict)
    """Those that links ship."""
    marks: dict[bytes, int] = field(default_factory=dict)
    """By origin: below it all came."""

    def copied(self) -> Content:
        return Content(
            {name: list(each) for name, each in self.queues.items()},
            {name: list(each) for name, each in self.taken.items()},
            {name: each.copied() for name, each in self.rings.items()},
            dict(self.marks),
        )

    def copies(self, queue: str) -> Counter[int]:
        """Of each number: how many came, taken or not."""
        there = [each.number for each in self.queues.get(queue, ())]
        return Counter([*there, *self.taken.get(queue, ())])

    def acknowledge(self, queue: str, messages: list[Message]) -> None:
        for each in messages:
            self.queues[queue].remove(each)
            self.taken.setdefault(queue, []).append(each.number)


Change: TypeAlias = Callable[[Content], None]


class Store(Kept[Content]):
    def __init__(self, disk: Disk) -> None:
        super().__init__(disk, Content(), Content())

    def visible(self, queue: str) -> list[Message]:
        """What a consumer may take: it is synced."""
        synced = {each.number for each in self.synced.queues[queue]}
        return [each for each in self.memory.queues[queue] if each.number in synced]

    def declare(self, *, queues: tuple[str, ...] = (), rings: tuple[str, ...] = ()) -> None:
        """Before anything happens."""
        for content in (self.memory, self.synced):
            content.queues.update({each: [] for each in queues})
            content.rings.update({each: Ring() for each in rings})
