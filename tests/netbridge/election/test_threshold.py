"""How many have to say yes, and how long a lease is valid: the tables of §3.6."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.election.lease import Lease
from shmbroker.netbridge.election.threshold import IMPOSSIBLE, Quorum, of_lives, of_witnesses


@pytest.mark.parametrize(
    ("lives", "needed"), [(1, IMPOSSIBLE), (2, 1), (3, 2), (4, 3), (5, 3), (6, 4), (9, 5)]
)
def test_yes_needed_from_the_other_lives(lives: int, needed: int) -> None:
    assert of_lives(lives) == needed
    assert lives == 1 or 2 * needed > lives - 1  # two majorities have a voter in common


@pytest.mark.parametrize(("witnesses", "needed"), [(1, 1), (3, 2), (5, 3)])
def test_a_majority_of_the_witnesses(witnesses: int, needed: int) -> None:
    assert of_witnesses(witnesses) == needed


def test_with_five_groups_a_whole_one_may_be_missing_with_three_none() -> None:
    assert of_lives(5) <= 5 - 1 - 1
    assert of_lives(3) > 3 - 1 - 1


def test_lives_that_are_gone_count() -> None:
    quorum = Quorum().sees(["a", "b", "c"]).sees(["a"])
    assert (quorum.lives, quorum.needed) == (3, 2)


def test_the_larger_of_both_counts() -> None:
    assert Quorum(size=5).sees(["a", "b", "c"]).lives == 5
    assert Quorum(size=2).sees(["a", "b", "c"]).lives == 3


def test_the_threshold_falls_when_all_that_remain_were_restarted() -> None:
    others = Quorum().sees(["a", "b", "c"])
    first = others.restarted().sees(["a", "b"]).told(others.lives)
    assert first.lives == 3  # b counts three still
    second = others.restarted().sees(["a", "b"]).told(first.restarted().sees(["a", "b"]).lives)
    assert second.lives == 2


def test_the_threshold_falls_by_command() -> None:
    quorum = Quorum(recalculates=False).sees(["a", "b", "c"])
    assert quorum.restarted().lives == 3
    assert quorum.forgets("c").lives == 2


def test_a_node_is_counted_off_once_until_it_is_back() -> None:
    kept = Quorum(recalculates=False, seen_max=5)
    less = kept.sees(["a", "b"]).forgets("c").forgets("c").restarted().forgets("c")
    assert less.lives == 4
    assert less.sees(["a", "c"]).lives == 5
    assert less.sees(["a", "c"]).forgets("c").lives == 4
    met = Quorum().sees(["a", "b"])
    assert met.forgets("c") == met, "it did not count"


def test_a_lease_counts_from_when_its_renewal_was_sent_and_for_half_its_time() -> None:
    lease = Lease(1.0, 1)
    serial = lease.renews(["v1"], 10.0)
    lease.renewed("v1", serial, 1, 0)
    assert lease.is_valid(10.49)
    assert not lease.is_valid(10.5)
    assert lease.due_at == 10.25


def test_a_lease_needs_a_majority() -> None:
    lease = Lease(1.0, 2)
    serial = lease.renews(["v1", "v2", "v3"], 10.0)
    lease.renewed("v1", serial, 1, 0)
    assert not lease.is_valid(10.1)
    lease.renewed("v2", serial, 1, 0)
    assert lease.is_valid(10.1)


def test_a_connection_that_ends_ends_the_lease_and_a_late_answer_does_not_bring_it_back() -> None:
    lease = Lease(1.0, 1)
    serial = lease.renews(["v1"], 10.0)
    lease.renewed("v1", serial, 1, 0)
    later = lease.renews(["v1"], 10.2)
    lease.ended("v1")
    assert not lease.is_valid(10.3)
    lease.renewed("v1", later, 1, 0)
    assert not lease.is_valid(10.3)


def test_a_lease_that_is_off_is_never_valid() -> None:
    lease = Lease(0.0, 1)
    serial = lease.renews(["v1"], 10.0)
    lease.renewed("v1", serial, 1, 0)
    assert not lease.is_valid(10.0)
