"""Options of a session."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

MIB: Final = 1 << 20
NO_LIMIT: Final = -1
UNSAID_MAX: Final = 256 << 10


class Mode(Enum):
    AUTOMATIC = "automatic"
    APPLICATION = "application"


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Times in seconds."""

    failover_mode: Mode = Mode.AUTOMATIC
    reconnect_deadline: float = 60.0
    """-1: for ever; 0: no reconnect."""
    call_timeout: float = 30.0
    call_failover_timeout: float = NO_LIMIT
    confirmation_window: int = MIB
    """Bytes; -1: no re-attach."""
    frame_bytes: int = 4 * MIB
    message_bytes: int = 256 * MIB
    prefetch_bytes: int = MIB
    """Of a consumer that may be in hand."""

    @property
    def unsaid_max(self) -> int:
        """Bytes that the program has seen and not told of, whatever its window."""
        window = self.confirmation_window
        return UNSAID_MAX if window == NO_LIMIT else min(window // 4, UNSAID_MAX)
