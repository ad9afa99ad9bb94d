"""What a session has in hand: messages that were taken for it, by the numbers of their deliveries.

A batch is one structure of C; nothing is made for each message.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from shmbroker.core.codes import FULL, OK, REVOKED
from shmbroker.ipc._native import lib
from shmbroker.ipc.queue.queue import Queue


class Batch(Protocol):
    """Messages that were delivered together."""

    def ack(self, start: int, count: int) -> int:
        """How many of them were ours still."""

    def give_back(self, start: int, count: int) -> int:
        """How many of them were ours still."""

    def reject(self, start: int, count: int) -> list[int]:
        """The code of each: OK, or FULL if there was no room, and it went back."""


@dataclass(slots=True)
class TakenBatch:
    queue: Queue
    messages: Any
    """As C knows them."""
    first: int = 0
    """Of them that is of this batch."""

    @property
    def source(self) -> str:
        """The queue that they are from."""
        return self.queue.name

    def at(self, index: int) -> Any:
        return self.messages + self.first + index

    def ack(self, start: int, count: int) -> int:
        ours: int = lib.sb_ack_many(self.queue._queue, self.at(start), count)
        return max(0, ours)

    def give_back(self, start: int, count: int) -> int:
        """The first first: somebody may wait for them."""
        queue, end = self.queue._queue, start + count
        return [lib.sb_give_back(queue, self.at(each)) for each in range(start, end)].count(OK)

    def reject(self, start: int, count: int) -> list[int]:
        """Once there is no room, nobody waits for it again."""
        codes: list[int] = []
        for each in range(start, start + count):
            if FULL in codes:
                codes.append(FULL if self.give_back(each, 1) else REVOKED)
            else:
                codes.append(lib.sb_reject(self.queue._queue, self.at(each)))
        return codes


@dataclass(slots=True)
class Hand:
    first: int
    count: int
    left: int
    batch: Batch


Settle = Callable[[Batch, int, int], int]


class Hands:
    def __init__(self) -> None:
        self._hands: list[Hand] = []
        self._firsts: list[int] = []

    def add(self, first: int, count: int, batch: Batch) -> None:
        """In the order of their numbers: what has travelled comes when the worker has it."""
        place = bisect_right(self._firsts, first)
        self._hands.insert(place, Hand(first, count, count, batch))
        self._firsts.insert(place, first)

    def stretches(self, first: int, count: int) -> Iterator[tuple[Hand, int, int]]:
        """Where these deliveries are, all of which are in hand: from where in a batch, how many."""
        at, end = first, first + count
        while at < end:
            hand = self._hands[bisect_right(self._firsts, at) - 1]
            until = min(end, hand.first + hand.count)
            yield hand, at - hand.first, until - at
            at = until

    def settle(self, how: Settle, first: int, count: int) -> int:
        """How many of them were ours still."""
        ours = 0
        for hand, start, length in list(self.stretches(first, count)):
            ours += how(hand.batch, start, length)
            self.dealt_with(hand, length)
        return ours

    def reject(self, first: int, count: int) -> list[int]:
        """The code of each."""
        codes: list[int] = []
        for hand, start, length in list(self.stretches(first, count)):
            codes += hand.batch.reject(start, length)
            self.dealt_with(hand, length)
        return codes

    def give_back(self, deliveries: Iterable[int]) -> None:
        """In the order in which they were taken."""
        for each in sorted(deliveries):
            self.settle(lambda batch, start, count: batch.give_back(start, count), each, 1)

    def dealt_with(self, hand: Hand, count: int) -> None:
        hand.left -= count
        if hand.left == 0:
            place = bisect_right(self._firsts, hand.first) - 1
            del self._hands[place], self._firsts[place]
