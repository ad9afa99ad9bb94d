"""What a broker says of itself to whoever knows the secret."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Announcement:
    node: bytes
    incarnation: bytes
    """Of the broadcast: another one each time that it begins."""
    started: int
    """When that was, by the clock of the announcing host, in nanoseconds; compared only with
    others of the same broker."""
    sequence: int
    """Of this incarnation, from 1 on; each announcement has the next one."""
    name: str
    uri: str
    """How it is reached."""
    is_live: bool
    """False: it is a backup of the live of its node."""
    epoch: int
    period_ms: int
    """Until the next announcement."""
