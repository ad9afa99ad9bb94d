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


def test_an_answer_of_one_voter_says_nothing_of_another() -> None:
    lease = Lease(1.0, 2)
    first = lease.renews(["b", "c"], 0.0)
    second = lease.renews(["b", "c"], 0.25)
    lease.renewed("b", second, 5, 7)
    lease.renewed("c", first, 5, 7)
    assert lease.valid_until == 0.5
    lease.ended("b")
    assert lease.valid_until < 0.0
    lease.renewed("c", second, 5, 7)
    lease.renewed("b", lease.renews(["b"], 0.5), 5, 7)
    assert lease.valid_until == 0.75


def test_what_was_sent_before_an_answer_is_not_kept() -> None:
    lease = Lease(1.0, 1)
    for now in (0.0, 0.25, 0.5):
        serial = lease.renews(["b"], now)
    lease.renewed("b", serial - 1, 5, 7)
    assert list(lease.sent) == [("b", serial)]


def test_the_list_is_told_seven_times_a_second_where_leases_are_off() -> None:
    lease = Lease(0.0, 1)
    lease.renews(["b"], 1.0)
    assert lease.due_at == 1.15
