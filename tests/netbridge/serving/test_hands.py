"""What a session has in hand, by the numbers of its deliveries."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice, permutations

import pytest

from shmbroker.netbridge.serving.hands import Hands


@dataclass
class Noted:
    """A batch that is told what is settled of it."""

    acked: list[tuple[int, int]] = field(default_factory=list)

    def ack(self, start: int, count: int) -> int:
        self.acked.append((start, count))
        return count

    def give_back(self, start: int, count: int) -> int:
        return self.ack(start, count)

    def reject(self, start: int, count: int) -> list[int]:
        return [0] * self.ack(start, count)


@pytest.mark.parametrize("order", list(permutations([(0, 2), (2, 1), (7, 3)])))
def test_deliveries_are_found_in_whatever_order_they_came(order: list[tuple[int, int]]) -> None:
    """Those of a transaction that has travelled come when the worker has them."""
    hands, batches = Hands(), {first: Noted() for first, _ in order}
    for first, count in order:
        hands.add(first, count, batches[first])
    for at, first in ((0, 0), (1, 0), (2, 2), (7, 7), (9, 7)):
        [(hand, start, count)] = islice(hands.stretches(at, 1), 2)
        assert (hand.first, start, count) == (first, at - first, 1)
    found = [(hand.first, start, count) for hand, start, count in islice(hands.stretches(1, 2), 3)]
    assert found == [(0, 1, 1), (2, 0, 1)]
    for first, count in order:
        assert hands.settle(lambda batch, start, length: batch.ack(start, length), first, count)
    assert {first: each.acked for first, each in batches.items()} == {
        first: [(0, count)] for first, count in order
    }
