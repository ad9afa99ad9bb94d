"""What the other end of a network link wants of the messages here, and whose turn it is.

The other end counts as one consumer of each queue that it wants, beside those that are here.  Turns
go by the positions of messages: of each cycle of positions the first ones are for consumers here,
each of the others for one link.  So a share does not depend on who is faster.  A link of which
enough is on its way has no turn: what would have been its is for those that have room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from shmbroker.core.layout import QUEUE_ROWS
from shmbroker.netbridge.network.said import Wants
from shmbroker.netbridge.wire.malformed import Malformed

SHARES: Final = 8
"""Of what may be on its way."""


class Supply:
    """Of one connection."""

    def __init__(self) -> None:
        self.prefetch = 1
        self.is_duplex = False
        self.queues: frozenset[str] = frozenset()
        """That are wanted, as far as it was told as a whole."""
        self._coming: set[str] = set()

    def heard(self, what: Wants) -> bool:
        """Whether there is anything new that counts.  Malformed: it is more than a broker has."""
        self._coming |= set(what.queues)
        self._coming -= set(what.gone)
        if len(self._coming) > QUEUE_ROWS:
            raise Malformed(f"{len(self._coming)} queues are wanted, and a broker has {QUEUE_ROWS}")
        if not what.is_whole:
            return False
        self.prefetch, self.is_duplex = what.prefetch, what.is_duplex
        self.queues = frozenset(self._coming)
        return True


@dataclass(frozen=True, slots=True)
class Way:
    """To a broker that wants messages."""

    ring: str
    """In which they wait until they are confirmed there."""
    prefetch: int
    queues: frozenset[str]


@dataclass(frozen=True, slots=True)
class Turn:
    """Of each `cycle` positions of a queue, this one goes this way."""

    ring: str
    cycle: int
    turn: int
    most: int
    """So many messages, until it is looked again."""


def share(prefetch: int) -> int:
    """So many messages go at a time once so many are confirmed: one by one they would cost more,
    and if all were waited for nothing would be on its way meanwhile."""
    return max(1, prefetch // SHARES)


def turns(
    queue: str, ways: Iterable[Way], waiting: Mapping[str, int], consumers: int
) -> list[Turn]:
    """`waiting`: messages that are on their way, by rings; `consumers`: of the queue, here."""
    room = {
        each.ring: each.prefetch - waiting.get(each.ring, 0)
        for each in sorted(ways, key=lambda way: way.ring)
        if queue in each.queues
    }
    having = [(ring, most) for ring, most in room.items() if most > 0]
    cycle = consumers + len(having)
    return [
        Turn(ring, cycle, consumers + number, most) for number, (ring, most) in enumerate(having)
    ]
