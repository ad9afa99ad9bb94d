"""The phases of a session at the program's end."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Phase(Enum):
    IDLE = "idle"
    CONNECTING = "connecting"
    ATTACHING = "attaching"
    REMAKING = "remaking"
    UP = "up"
    LOST = "lost"
    CLOSED = "closed"


RECOVERING: Final = (Phase.CONNECTING, Phase.ATTACHING, Phase.REMAKING)
OVER: Final = (Phase.IDLE, Phase.LOST, Phase.CLOSED)
