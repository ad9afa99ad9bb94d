"""Times and sizes of replication: the options of [ha.replication] that concern the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from shmbroker.netbridge.wire.words import ReplicaAck

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ReplicationTerms:
    """Times in seconds."""

    replica_timeout: float = 1.0
    """A replica without progress for so long leaves the set."""
    replica_ack: ReplicaAck = ReplicaAck.RECEIVED
    max_replicas: int = 1
    min_insync: int = 1
    """Copies, the live's included, without which nothing is confirmed."""
    sync_timeout: float = 30.0
    """So long a newcomer may take for the last step, in which confirms wait for it."""
    retry_wait: float = 2.0
    resync_bytes: int = 1024 * MIB
    """Of segments that are kept for a replica that is away; -1: all."""
    saved_journals: int = 2
    """Old data that is kept when all is copied anew; -1: all."""
    window: int = 8 * MIB
    """Bytes out of files that may be on their way."""
    in_flight: int = 64 * MIB
    """Bytes of new frames that a replica may be behind."""
