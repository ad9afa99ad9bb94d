"""What a session has in hand: messages that were taken for it, by the numbers of their deliveries.

A batch is one structure of C; nothing is made for each message.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from shmbroker.core.codes import OK
from shmbroker.ipc._native import lib
from shmbroker.ipc.queue.queue import Queue


class Batch(Protocol):
    """Messages that were delivered together; each call says how many of them were ours still."""

    def ack(self, start: int, count: int) -> int: ...

    def give_back(self, start: int, count: int) -> int: ...

    def reject(self, start: int, count: int) -> int: ...


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
        return self._each(lib.sb_give_back, start, count)

    def reject(self, start: int, count: int) -> int:
        return self._each(lib.sb_reject, start, count)

    def _each(self, settle: Callable[[Any, Any], int], start: int, count: int) -> int:
        codes = [settle(self.queue._queue, self.at(each)) for each in range(start, start + count)]
        return codes.count(OK)


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
        self._hands.append(Hand(first, count, count, batch))
        self._firsts.append(first)

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

    def give_back(self, deliveries: Iterable[int]) -> None:
        """In the order in which they were taken."""
        for each in sorted(deliveries):
            self.settle(lambda batch, start, count: batch.give_back(start, count), each, 1)

    def dealt_with(self, hand: Hand, count: int) -> None:
        hand.left -= count
        if hand.left == 0:
            place = bisect_right(self._firsts, hand.first) - 1
            del self._hands[place], self._firsts[place]
