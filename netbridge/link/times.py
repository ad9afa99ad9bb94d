"""Times and sizes of a link: the options of [link-defaults]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KIB: Final = 1 << 10
MIB: Final = 1 << 20
NO_LIMIT: Final = -1


@dataclass(frozen=True, slots=True)
class LinkTimes:
    """Times in seconds."""

    heartbeat_interval: float = 0.2
    heartbeat_misses: float = 3
    connect_timeout: float = 2.0
    handshake_timeout: float = 5.0
    pending_ack_timeout: float = 60.0
    window_size: int = MIB
    """Bytes of a target that may be on their way; 0: a message on request, -1: `memory`."""
    window_messages: int = 1000
    max_frame_size: int = 4 * MIB
    memory: int = 64 * MIB
    """Of a target, where the window has no limit."""
    max_message_size: int = 256 * MIB
    """What this end puts together of parts; larger messages are rejected at their source."""
    clock_difference: float = 1.0
    """Between the hosts: more is a warning."""
    origin_retention: float = 7 * 86400.0
    """How long a target keeps the mark of an idle origin; -1: for ever."""
    exact: bool = True
    """False: what is in doubt after a loss may come twice."""

    @property
    def silence(self) -> float:
        """After so long without a frame the link is lost."""
        return self.heartbeat_interval * self.heartbeat_misses
