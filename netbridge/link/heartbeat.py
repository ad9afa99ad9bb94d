"""When a beat is due, and when silence means that the link is lost."""

from __future__ import annotations

from typing import Final

from shmbroker.netbridge.link.times import LinkTimes

SLOTS: Final = 20
"""Of an interval: the far end of many links sends the beats of one slot together."""


class Heartbeat:
    """Any frame counts as a beat, in both directions."""

    def __init__(self, times: LinkTimes, now: float, *, in_slots: bool = False) -> None:
        """`in_slots`: a beat goes out a little early, with those of other links."""
        self.times = times
        self._in_slots = in_slots
        self._beats_each(times.heartbeat_interval)
        self.heard_at = self.sent_at = now
        self._bears = times.silence

    def _beats_each(self, seconds: float) -> None:
        self.sends_each = seconds
        self._slot = seconds / SLOTS if self._in_slots else 0.0

    def agree(self, peer_seconds: float) -> None:
        """The peer wants to hear something this often."""
        self._beats_each(min(self.sends_each, peer_seconds))

    def idle(self, peer_seconds: float) -> None:
        """We are passive: the peer beats this often, and knows nothing of what we would like."""
        self.agree(peer_seconds)
        self._bears = max(self._bears, peer_seconds * self.times.heartbeat_misses)

    def stood_still(self, due: float, now: float) -> None:
        """We were to be woken at `due`.  What the peer has said since then may not have come up to
        us yet, so it is no silence of the peer; a little late is everybody."""
        late = now - max(due, self.heard_at)
        if late >= self.sends_each / 2:
            self.heard_at += late

    @property
    def due(self) -> float:
        """The first of both: when a beat is due, or silence means that the link is lost."""
        at, silent = self.sent_at + self.sends_each, self.heard_at + self._bears
        if self._slot:
            at -= at % self._slot
        return at if at < silent else silent

    @property
    def silent_at(self) -> float:
        return self.heard_at + self._bears

    @property
    def beat_at(self) -> float:
        at = self.sent_at + self.sends_each
        return at - at % self._slot if self._slot else at

    def is_silent(self, now: float) -> bool:
        return now >= self.silent_at

    def is_due(self, now: float) -> bool:
        return now >= self.beat_at
