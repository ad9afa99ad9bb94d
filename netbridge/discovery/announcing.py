"""What a broker announces, and when: at once when it has changed, and then each period."""

from __future__ import annotations

from typing import Final

from shmbroker.netbridge.discovery.announcement import Announcement

NEVER: Final = float("inf")
MS: Final = 1000


class Announcing:
    def __init__(
        self, name: str, uri: str, period: float, incarnation: bytes, started: int
    ) -> None:
        """`period`: in seconds; `started`: nanoseconds by the clock of this host."""
        self.deadline = NEVER
        self._name, self._uri, self._period = name, uri, period
        self._incarnation, self._started = incarnation, started
        self._sequence = 0
        self._is: tuple[bytes, int, bool] | None = None

    def becomes(self, node: bytes, epoch: int, *, is_live: bool, now: float) -> None:
        """What this broker is from now on; before that nothing is said."""
        if (node, epoch, is_live) != self._is:
            self._is = node, epoch, is_live
            self.deadline = now

    def tick(self, now: float) -> Announcement | None:
        """What is to be said now."""
        if self._is is None or now < self.deadline:
            return None
        node, epoch, is_live = self._is
        self._sequence += 1
        self.deadline = now + self._period
        return Announcement(
            node, self._incarnation, self._started, self._sequence, self._name, self._uri, is_live,
            epoch, round(self._period * MS),
        )  # fmt: skip
