"""What counts of what a voter has decided, accepted and promised."""

from __future__ import annotations

from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import Ballot, Copy, Grant

FIRST, SECOND = (Grant(epoch, "a", (Copy("a"),)) for epoch in (1, 2))
ATTEMPT = Grant(2, "b", (Copy("b"),))


def test_the_newest_is_what_is_decided_if_it_is_of_the_same_epoch() -> None:
    accepted = Ballot(1, "b"), ATTEMPT
    assert Ledger().newest is None
    assert Ledger(accepted=accepted).newest is ATTEMPT
    assert Ledger(FIRST, accepted=accepted).newest is ATTEMPT
    assert Ledger(SECOND, accepted=accepted).newest is SECOND


def test_who_was_granted_an_epoch_before() -> None:
    ledger = Ledger(FIRST, accepted=(Ballot(1, "b"), ATTEMPT))
    assert [ledger.before(epoch) for epoch in (1, 2, 3)] == [None, FIRST, ATTEMPT]
    assert Ledger(SECOND, accepted=(Ballot(1, "b"), ATTEMPT)).before(3) is SECOND


def test_an_acceptance_is_told_to_who_asks_for_its_epoch_or_a_lower_one() -> None:
    accepted = Ballot(1, "b"), ATTEMPT
    ledger = Ledger(FIRST, accepted=accepted)
    assert [ledger.accepted_from(epoch) for epoch in (1, 2, 3)] == [accepted, accepted, None]
