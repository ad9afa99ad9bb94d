"""The states of a link, and what each refusal of a far end means to a plan."""

from __future__ import annotations

from enum import Enum
from typing import Final

from shmbroker.netbridge.wire.words import Refusal


class State(Enum):
    IDLE = "idle"
    CONNECTING = "connecting"
    HANDSHAKING = "handshaking"
    SYNCING = "syncing"
    UP = "up"
    LOST = "lost"
    BACKOFF = "backoff"
    UNREACHABLE = "unreachable"
    PEER_PASSIVE = "peer-passive"
    REFUSED = "refused"
    FAILED = "failed"
    STOPPED = "stopped"


LEVELS: Final = {
    State.UP: "info",
    State.LOST: "warning",
    State.UNREACHABLE: "warning",
    State.PEER_PASSIVE: "info",
    State.REFUSED: "error",
    State.FAILED: "error",
    State.STOPPED: "info",
}
"""Of the line in the log. A change to any other state has none."""


FINAL: Final = {Refusal.SELF, Refusal.STALE}
"""The member is not tried again until the link is started; `stale` is for the owner to decide."""
LATER: Final = {Refusal.CREDENTIALS, Refusal.VHOST, Refusal.DUPLICATE_NODE}
"""It is tried again after `refused-retry-interval`."""


def state_after(refusal: Refusal) -> State:
    if refusal in FINAL | LATER:
        return State.REFUSED
    return State.PEER_PASSIVE if refusal is Refusal.PASSIVE else State.FAILED
