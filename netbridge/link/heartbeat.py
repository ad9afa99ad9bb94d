"""When a beat is due, and when silence means that the link is lost."""

from __future__ import annotations

from shmbroker.netbridge.link.times import LinkTimes


class Heartbeat:
    """Any frame counts as a beat, in both directions."""

    def __init__(self, times: LinkTimes, now: float) -> None:
        self.times = times
        self.sends_each = times.heartbeat_interval
        self.heard_at = self.sent_at = now
        self._bears = times.silence

    def agree(self, peer_seconds: float) -> None:
        """The peer wants to hear something this often."""
        self.sends_each = min(self.sends_each, peer_seconds)

    def idle(self, peer_seconds: float) -> None:
        """We are passive: the peer beats this often, and knows nothing of what we would like."""
        self.agree(peer_seconds)
        self._bears = max(self._bears, peer_seconds * self.times.heartbeat_misses)

    @property
    def silent_at(self) -> float:
        return self.heard_at + self._bears

    @property
    def beat_at(self) -> float:
        return self.sent_at + self.sends_each

    def is_silent(self, now: float) -> bool:
        return now >= self.silent_at

    def is_due(self, now: float) -> bool:
        return now >= self.beat_at
