"""Reading originals without a gate, as core/original.py does.

A moment is seen at once, and copied in pieces: what was reclaimed meanwhile is gone.  What programs
do not get, while the lease of their broker has lapsed, is copied all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from shmbroker.netbridge.simulation.queue_replicas.copy import Record, Stands
from shmbroker.netbridge.simulation.queue_replicas.memory import Memory
from shmbroker.netbridge.simulation.queue_replicas.queue import Queue

NEVER_TOLD: Final = Stands(-1, -1, frozenset(), -1)


@dataclass(eq=False, slots=True)
class Original:
    queue: Queue
    number: int
    cursor: int
    seen: Stands = NEVER_TOLD
    told: Stands = NEVER_TOLD
    version: int = 0
    """That the queue had, or showed, at the moment."""


@dataclass(slots=True)
class Batch:
    records: list[Record | Stands] = field(default_factory=list)
    more: bool = False
    whole: bool = False


class Reading:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.originals: dict[int, Original] = {}
        self._in_moment = self._is_late = False
        self._committed = 0

    def add(self, queue: Queue, number: int, cursor: int) -> None:
        self.originals[number] = Original(queue, number, max(cursor, queue.head))
        self._in_moment = False  # the newcomer belongs to the next one

    def drop(self, number: int) -> None:
        self.originals.pop(number, None)

    def is_there(self, original: Original) -> bool:
        return self._memory.queues.get(original.queue.name) is original.queue

    def read(self, room: int) -> Batch | None:
        """None: a transaction stands half way, or nothing has changed."""
        for number, each in list(self.originals.items()):
            if not self.is_there(each):
                self.drop(number)
        if not self._in_moment and not self._see():
            return None
        batch = Batch()
        for each in self.originals.values():
            self._messages(each, batch, room)
        if not batch.more:
            self._stands(batch)
            self._in_moment = False
            batch.whole = not self._is_late or self._committed == self._memory.committed
        return batch if batch.records else None

    def _see(self) -> bool:
        if not self._memory.is_between:
            return False
        self._committed = self._memory.committed
        for each in self.originals.values():
            queue, end = each.queue, self._memory.end(each.queue)
            done = frozenset(at for at in queue.done if at < end)
            each.seen = Stands(each.number, min(queue.head, end), done, end)
            each.version = queue.version
        self._in_moment, self._is_late = True, False
        return True

    def _messages(self, one: Original, batch: Batch, room: int) -> None:
        one.cursor = max(one.cursor, one.seen.head)
        while one.cursor < one.seen.end and not batch.more:
            if one.cursor in one.seen.done:
                one.cursor += 1
            elif len(batch.records) >= room:
                batch.more = True
            elif one.cursor < one.queue.head:
                self._is_late = True
                one.cursor += 1
            else:
                message = one.queue.bodies.get(one.cursor)
                if message is not None:
                    batch.records.append(Record(one.number, one.cursor, message))
                one.cursor += 1

    def _stands(self, batch: Batch) -> None:
        """The reader is told each change."""
        for each in self.originals.values():
            if each.seen != each.told:
                each.told = each.seen
                batch.records.append(each.seen)
