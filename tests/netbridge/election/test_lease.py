"""What voters have of a live counts as long as they are voters."""

from __future__ import annotations

from shmbroker.netbridge.election.lease import Lease


def test_what_others_than_the_voters_have_does_not_count() -> None:
    lease = Lease(0.6, 2)
    serial = lease.renews(["b", "c"], 0.0)
    for voter in ("b", "c"):
        lease.renewed(voter, serial, 5, 7)
    assert lease.is_told(5, 7)
    lease.voters_are(["b", "d"])
    assert not lease.is_told(5, 7)
    lease.renewed("d", lease.renews(["d"], 1.0), 5, 7)
    assert lease.is_told(5, 7)
