"""A replica on one link, as ipc/queue_replica/copy.py has it: what came is staged, then shown."""

from __future__ import annotations

from dataclasses import dataclass

from shmbroker.netbridge.simulation.queue_replicas.queue import Queue, Storing


@dataclass(frozen=True, slots=True)
class Record:
    """A message of the queue with this number."""

    number: int
    position: int
    message: int


@dataclass(frozen=True, slots=True)
class Stands:
    """How an original stood at a moment."""

    number: int
    head: int
    done: frozenset[int]
    end: int


class Copy:
    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.next = self.end = queue.tail
        self.head = queue.head
        self.done: frozenset[int] = frozenset()
        self.why = ""
        """It cannot follow any more."""
        self.is_stale = False
        self._staged: list[Record] = []
        self._has_news = self._is_compared = False

    def take(self, record: Record | Stands) -> None:
        if self.why:
            return
        if isinstance(record, Stands):
            self.head, self.done, self.end = record.head, record.done, record.end
            self.next = max(self.next, self.end)
            self._has_news = True
        elif record.position >= self.next:
            self._staged.append(record)
            self.next = record.position + 1

    def show(self, storing: Storing) -> bool:
        """All that was taken; False: it cannot follow any more."""
        if not self._has_news or self.why:
            return not self.why
        known = self.queue.tail
        if not self._all_has_place(storing):
            self.why = f"no place in {self.queue.slots} slots"
        elif self._has_what_is_lost_there(known):
            self.is_stale = True
            self.why = "something came back there"
        self._is_compared = True
        self._staged.clear()
        self._has_news = False
        return not self.why

    def _all_has_place(self, storing: Storing) -> bool:
        queue, first = self.queue, self.head
        while first in self.done:
            first += 1
        if self.end - first > queue.slots:
            return False  # before any of it is shown
        if not queue.retire_below(self.head, storing):
            return False
        queue.retire_all(self.done, storing)
        for each in self._staged:
            if each.position < self.head or each.position in self.done:
                continue
            storing()
            if not queue.place(each.position, each.message):
                return False
        has_place = queue.holes(self.end)
        queue.retire_all(self.done, storing)
        return has_place

    def _has_what_is_lost_there(self, known: int) -> bool:
        """What was below this position, before this moment was shown."""
        if self._is_compared:
            return False
        return self.queue.has_revived(self.head, self.done, min(self.end, known))
