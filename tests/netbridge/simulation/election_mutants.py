"""Voters, candidates and leases with one guard removed: the world of votes alone objects to each.

Nearly all that a voter answers a candidate hears twice: what was decided is refused, and named.  So
of some pairs of guards one is enough, and both are removed.
"""

from __future__ import annotations

from typing import Final

from shmbroker.netbridge.election.candidate import Candidate
from shmbroker.netbridge.election.lease import Lease
from shmbroker.netbridge.election.voter import Voter
from tests.netbridge.simulation.mutants import Mutant

LEASE_NOT_LOOKED_AT: Final = Mutant(
    "lease-not-looked-at-when-accepting",
    Voter,
    "_may_accept",
    "not is_consented and now < self.leased_until.get(node, 0.0)",
    "False",
)
WHAT_IS_KNOWN_NOT_HEARD: Final = Mutant(
    "what-a-voter-knows-not-heard",
    Candidate,
    "answered",
    "known is not None and known.grant.epoch >= self.wanted.epoch",
    "False",
)

MUTANTS: Final = (
    # --- candidates
    Mutant(
        "asks-to-accept-a-ballot-that-was-not-promised",
        Candidate,
        "_question",
        "self.ballot",
        'Ballot(self.round, f"{self.asker} {self.life}")',
    ),
    Mutant(
        "what-may-be-decided-not-adopted",
        Candidate,
        "_propose",
        "newest is not None and self._may_be_decided(newest)",
        "False",
    ),
    Mutant(
        "voters-that-say-nothing-not-counted",
        Candidate,
        "_may_be_decided",
        "accepted + silent >= self.electorate.needed",
        "accepted >= self.electorate.needed",
    ),
    Mutant(
        "what-a-majority-has-accepted-not-decided",
        Candidate,
        "answered",
        "list(self.accepted.values()).count(answer.accepted) >= self.electorate.needed",
        "False",
    ),
    Mutant(
        "answers-of-an-earlier-attempt-counted",
        Candidate,
        "answered",
        "or answer.attempt != self.attempt",
        "",
    ),
    Mutant(
        "answers-of-another-step-counted",
        Candidate,
        "answered",
        "STEPS[self.phase] is answer.step and",
        "",
    ),
    # --- voters
    Mutant(
        "lease-shorter-than-its-live-wants",
        Voter,
        "_lease_of",
        "max(self.lease, self.ledgers[node].lease_ms / 1000)",
        "self.lease",
    ),
    Mutant(
        "another-holder-of-an-epoch-that-is-known",
        Voter,
        "_judged",
        'return (Verdict.YES, "") if is_same',
        'return (Verdict.YES, "") if newest.epoch == grant.epoch',
        behind=WHAT_IS_KNOWN_NOT_HEARD,
    ),
    Mutant(
        "a-live-that-is-seen-not-looked-at",
        Voter,
        "_would",
        "self._sees(node, live, now)",
        "False",
        behind=LEASE_NOT_LOOKED_AT,
    ),
    Mutant(
        "a-lease-without-a-link-not-seen",
        Voter,
        "_sees",
        "(node, live.holder) in self.renewing or now < self.leased_until.get(node, 0.0)",
        "(node, live.holder) in self.renewing",
        behind=LEASE_NOT_LOOKED_AT,
    ),
    # --- leases
    Mutant(
        "one-voter-is-enough-for-a-lease",
        Lease,
        "valid_until",
        "moments[self.needed - 1] if len(moments) >= self.needed",
        "moments[0] if moments",
    ),
)

SHOWN_BY: Final = {
    "asks-to-accept-a-ballot-that-was-not-promised": 281,
    "what-may-be-decided-not-adopted": 137,
    "voters-that-say-nothing-not-counted": 137,
    "what-a-majority-has-accepted-not-decided": 2358,
    "answers-of-an-earlier-attempt-counted": 2,
    "answers-of-another-step-counted": 0,
    "lease-shorter-than-its-live-wants": 318,
    "another-holder-of-an-epoch-that-is-known": 265,
    "a-live-that-is-seen-not-looked-at": 0,
    "a-lease-without-a-link-not-seen": 318,
    "one-voter-is-enough-for-a-lease": 1036,
}
"""The seed that objects to each."""
