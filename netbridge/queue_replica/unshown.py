"""Whole moments that another broker was sent and has not shown: what confirms here wait for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from shmbroker.netbridge.wire.malformed import Malformed


class Unshown:
    def __init__(self) -> None:
        self._identities: dict[int, bytes] = {}
        """By number, of the queues whose confirms wait for it."""
        self._uncounted: dict[int, int] = {}
        """By number, of replicas that have shown nothing yet: the first moment that they are sent;
        0: they were sent none."""
        self._moments = 0
        self._ends: deque[tuple[int, dict[int, int]]] = deque()
        """Which of the moments it is, and where these queues end in it."""
        self._last: dict[int, int] = {}
        """By number, where it ended in the last moment that was sent."""

    def __bool__(self) -> bool:
        return bool(self._ends)

    @property
    def identities(self) -> set[bytes]:
        return set(self._identities.values())

    @property
    def numbers(self) -> set[int]:
        return set(self._identities)

    def follow(self, number: int, identity: bytes | None) -> None:
        """None: no confirm waits for it."""
        self._uncounted[number] = 0
        if identity is not None:
            self._identities[number] = identity

    def drop(self, number: int) -> bytes | None:
        """None: no confirm waited for it."""
        for _, ends in self._ends:
            ends.pop(number, None)  # it may begin anew, and have nothing
        self._uncounted.pop(number, None)
        self._last.pop(number, None)
        return self._identities.pop(number, None)

    def sent(self, ends: Mapping[int, int]) -> None:
        """One more that is whole."""
        self._moments += 1
        for number, first in self._uncounted.items():
            self._uncounted[number] = first or self._moments
        if self._identities:
            self._ends.append((self._moments, dict(ends)))
            self._last.update(ends)

    def lacking(self, ends: Mapping[int, int]) -> set[bytes]:
        """Of these queues those that end here behind what the other end was sent."""
        return {self._identities[number] for number, end in ends.items()
                if end > self._last.get(number, 0)}  # fmt: skip

    def shown(self, moments: int) -> Iterator[tuple[bytes, int]]:
        """The other end has shown so many: which queues are there, and where they end.
        Malformed: it was not sent so many."""
        if moments > self._moments:
            raise Malformed(f"a replica shows {moments} moments of {self._moments}")
        while self._ends and self._ends[0][0] <= moments:
            _, ends = self._ends.popleft()
            for number, end in ends.items():
                if number in self._identities:
                    yield self._identities[number], end

    def counted(self, moments: int) -> list[int]:
        """The numbers of those that have shown a first moment now that it is so many."""
        found = [each for each, first in self._uncounted.items() if 0 < first <= moments]
        for each in found:
            del self._uncounted[each]
        return found
