"""How a link ends: once, in one state, for one reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from shmbroker.netbridge.wire.words import Refusal


class State(Enum):
    CONNECTING = "connecting"
    HANDSHAKING = "handshaking"
    SYNCING = "syncing"
    UP = "up"
    LOST = "lost"
    PEER_PASSIVE = "peer-passive"
    REFUSED = "refused"
    FAILED = "failed"
    STOPPED = "stopped"


class Retry(Enum):
    """When its owner may try again."""

    AT_ONCE = "the next round of the plan begins now"
    NEXT = "the next member of the plan"
    BACK_OFF = "after the pause of the plan"
    REFUSED_INTERVAL = "after refused-retry-interval"
    NEVER = "not until it is started again"
    UPWARDS = "high availability decides"


class Reason(Enum):
    CONNECT_TIMEOUT = "connect-timeout"
    HANDSHAKE_TIMEOUT = "handshake-timeout"
    DISCONNECTED = "disconnected"
    SILENCE = "silence"
    MALFORMED = "malformed"
    FRAMES_MISSING = "frames-missing"
    UNEXPECTED = "unexpected"
    """A frame that does not belong here."""
    CREDIT = "credit"
    """The other end sends more than it may."""
    EPOCH = "epoch"
    """The other end is another live than the one that was met."""
    SUPERSEDED = "superseded"
    """The other end has made a newer connection."""
    PEER_PROOF = "peer-proof"
    """The far end does not know the secret."""
    PEER_CLOSING = "peer-closing"
    MOVED = "moved"
    STOPPED = "stopped"
    UNSERVED = "not served there"
    """The far end has none of the targets."""
    NO_SOURCE = "cannot be shipped"
    NOT_JOINED = "not joined"
    """The exchange of an agent is another one there."""
    DROPPED = "dropped"
    """A replica does not progress, or says what cannot be."""
    PENDING_ACK_TIMEOUT = "pending-ack-timeout"
    CREDENTIALS = "credentials"
    PASSIVE = "passive"
    VHOST = "vhost"
    SELF = "self"
    DUPLICATE_NODE = "duplicate-node"
    STALE = "stale"
    VERSION = "version"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class Ending:
    state: State
    reason: Reason
    detail: str
    retry: Retry
    uri: str = ""
    """Of the broker to go to, if the other end has named one."""


OF_REASON: Final = {
    Reason.CONNECT_TIMEOUT: (State.LOST, Retry.BACK_OFF),
    Reason.HANDSHAKE_TIMEOUT: (State.LOST, Retry.BACK_OFF),
    Reason.DISCONNECTED: (State.LOST, Retry.AT_ONCE),
    Reason.SILENCE: (State.LOST, Retry.AT_ONCE),
    Reason.MALFORMED: (State.FAILED, Retry.BACK_OFF),
    Reason.FRAMES_MISSING: (State.FAILED, Retry.BACK_OFF),
    Reason.UNEXPECTED: (State.FAILED, Retry.BACK_OFF),
    Reason.CREDIT: (State.FAILED, Retry.BACK_OFF),
    Reason.EPOCH: (State.LOST, Retry.AT_ONCE),
    Reason.SUPERSEDED: (State.LOST, Retry.NEVER),
    Reason.PEER_PROOF: (State.REFUSED, Retry.REFUSED_INTERVAL),
    Reason.PEER_CLOSING: (State.LOST, Retry.AT_ONCE),
    Reason.MOVED: (State.LOST, Retry.AT_ONCE),
    Reason.UNSERVED: (State.LOST, Retry.BACK_OFF),
    Reason.NO_SOURCE: (State.LOST, Retry.BACK_OFF),
    Reason.NOT_JOINED: (State.FAILED, Retry.BACK_OFF),
    Reason.DROPPED: (State.LOST, Retry.BACK_OFF),
    Reason.STOPPED: (State.STOPPED, Retry.NEVER),
    Reason.PENDING_ACK_TIMEOUT: (State.STOPPED, Retry.NEVER),
    Reason.CREDENTIALS: (State.REFUSED, Retry.REFUSED_INTERVAL),
    Reason.PASSIVE: (State.PEER_PASSIVE, Retry.NEXT),
    Reason.VHOST: (State.REFUSED, Retry.REFUSED_INTERVAL),
    Reason.SELF: (State.REFUSED, Retry.NEVER),
    Reason.DUPLICATE_NODE: (State.REFUSED, Retry.REFUSED_INTERVAL),
    Reason.STALE: (State.REFUSED, Retry.UPWARDS),
    Reason.VERSION: (State.FAILED, Retry.BACK_OFF),
    Reason.BUSY: (State.FAILED, Retry.BACK_OFF),
}


def ending(reason: Reason, detail: str = "", uri: str = "") -> Ending:
    state, retry = OF_REASON[reason]
    return Ending(state, reason, detail, retry, uri)


def refused(refusal: Refusal, detail: str = "", live: str = "") -> Ending:
    """At the near end, and at the far end that refused."""
    return ending(Reason(refusal.value), detail, live)
