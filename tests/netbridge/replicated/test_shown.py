"""The line `replication` of a sync."""

from __future__ import annotations

from shmbroker.netbridge.member.standing import State
from shmbroker.netbridge.replicated.shown import replication_of
from tests.netbridge.member.group import pair

SO_FAR = "43 %, 180 MiB/s"


def test_a_sync_says_how_far_it_is() -> None:
    group = pair()
    machine = group.machine("b")
    assert replication_of(machine, SO_FAR) == "in sync"
    machine.state = State.SYNCING
    assert replication_of(machine, SO_FAR) == "syncing 43 %, 180 MiB/s"
    assert replication_of(machine) == "syncing"
