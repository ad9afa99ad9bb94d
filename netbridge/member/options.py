"""What a member knows of its configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from shmbroker.netbridge.election.candidate import Electorate, Patience

STOP_CONFIRMING = "stop-confirming"
CONTINUE_ALONE = "continue-alone"


@dataclass(frozen=True, slots=True)
class MemberOptions:
    """Times in seconds."""

    name: str
    is_preferred: bool
    members: tuple[str, ...] = ()
    """In order; the first one is preferred, where the role is `auto`."""
    electorate: Electorate | None = None
    """None: nobody can be asked."""
    votes: bool = True
    """`vote-on-replication-failure`, where somebody can be asked."""
    on_lost_vote: str = "shutdown"
    on_partition: str = STOP_CONFIRMING
    lease: float = 0.6
    patience: Patience = field(default_factory=Patience)
    check_for_live: bool = False
    check_wait: float = 5.0
    allow_failback: bool = True
    restart_backup: bool = True
    has_command: bool = False
    """`on-promote`."""
    activates: bool = True
    """False: `activation = "command"`."""
    retry_wait: float = 2.0
    """`retry-replication-wait`."""
    connect_wait: float = 0.0
    """A member that runs has connected by then."""
    sync_timeout: float = 30.0
    """`initial-replication-sync-timeout`."""
    replica_timeout: float = 1.0
    ack_outlives_boot: bool = False
    """`replica-ack = "disk"`."""
    max_replicas: int = 1
    min_insync: int = 1
    is_checked: bool = False
    """`network-check`: whether it is isolated is found out, and it is until then."""
    handover_timeout: float = 60.0
    backup_timeout: float = 0.0
    drains: bool = False
    """[ha.scale-down]: it gives all to another node, and waits for its original."""

    def rank(self, member: str) -> int:
        """Who goes first."""
        if member in self.members:
            return self.members.index(member)
        return 0 if member == self.name and self.is_preferred else len(self.members) + 1
