"""The machines of members and voters with one guard removed: the simulation must object to each."""

from __future__ import annotations

from typing import Final

from shmbroker.netbridge.election.candidate import Candidate
from shmbroker.netbridge.election.lease import Lease
from shmbroker.netbridge.election.voter import Voter
from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.member.serving import Serving
from shmbroker.netbridge.replicated.admission import Admission
from shmbroker.netbridge.simulation.replication.ends import Ends
from shmbroker.netbridge.simulation.replication.member import MemberProcess
from tests.netbridge.simulation.mutants import Mutant

NOT_LEARNT: Final = Mutant(
    "a-list-that-another-voter-knows-not-learnt",
    Voter,
    "_learn",
    "told is None or had is None or told.age <= had.age",
    "True",
)

UNHELD: Final = Mutant(
    "counted-and-nothing-stands-for-it",
    Ends,
    "holds",
    "{each.member for each in self._counting}.issuperset(members)",
    "True",
)

MUTANTS: Final = (
    Mutant(
        "no-fence-check-before-a-write",
        Serving,
        "may_write",
        "self.state in (State.LIVE, State.ALONE, State.SUSPENDED)",
        "True",
    ),
    Mutant(
        "no-fence-check-after-a-sync",
        MemberProcess,
        "_do",
        "self.ends = None",
        "pass",
    ),
    Mutant(
        "lease-not-looked-at-when-the-disk-alone-confirms",
        MemberProcess,
        "confirmed",
        "clock < machine.serves_until(clock) and machine.is_valid(clock)",
        "True",
    ),
    Mutant(
        "lost-and-not-waited-for",
        Admission,
        "let_go",
        "if member not in counted",
        "if True",
        behind=UNHELD,
    ),
    Mutant(
        "records-that-are-not-synced-not-told",
        MemberProcess,
        "_do",
        "if untold:",
        "if False:",
    ),
    Mutant(
        "lease-not-looked-at-before-a-delivery",
        Serving,
        "is_doubtful",
        "bool(self.options.lease) and not self.is_valid(now)",
        "False",
        behind=Mutant(
            "served-right-after-a-pause",
            Serving,
            "serves_until",
            "self.ticked_at + lease / 2",
            "NEVER",
        ),
    ),
    Mutant(
        "goes-on-before-it-may",
        Serving,
        "_replica_lost",
        'self._suspend(f"{member} is lost")',
        "self.counted -= {member}",
    ),
    Mutant(
        "a-higher-epoch-of-another-ignored",
        Serving,
        "_met_another",
        "if self.is_over(hello.epoch, hello.last):",
        "if False:",
    ),
    Mutant(
        "in-sync-and-not-waited-for",
        Serving,
        "_admit",
        "self.counted |= {member}",
        "pass",
    ),
    Mutant(
        "no-prefix-check",
        Serving,
        "_join",
        "what.is_whole and bool(what.node) and self.has_frame(what.last)",
        "what.is_whole and bool(what.node)",
    ),
    Mutant(
        "handed-over-to-one-that-has-not-answered",
        Serving,
        "_drain",
        "self.tell(self.hand_to, Offer())",
        "self._accepted(self.hand_to, now)",
    ),
    Mutant("a-silent-replica-waited-for", Serving, "serving_tick", "and late and", "and False and"),
    Mutant(
        "counted-before-the-voters-know-its-node",
        Serving,
        "_admit",
        "not self.options.electorate or self.lease.is_told(self.epoch, self.version)",
        "True",
    ),
    # --- voters
    Mutant(
        "lease-counted-longer-than-voters-do",
        Lease,
        "renewed",
        "sent + self.seconds / 2",
        "sent + 2 * self.seconds",
    ),
    Mutant(
        "what-was-accepted-not-told",
        Voter,
        "_asked",
        "ledger.accepted_from(epoch), ledger.listed,",
        "None, ledger.listed,",
    ),
    Mutant(
        "no-pre-vote",
        Candidate,
        "begin",
        "self._step(Phase.WOULD, now)",
        "self._step(Phase.PREPARE, now)",
    ),
    Mutant(
        "granted-for-every-boot",
        Serving,
        "alone_grant",
        'self.boot if is_bound else ""',
        '""',
    ),
)

OF_ONE_HOST: Final = (
    Mutant(
        "dead-and-the-others-not-compared",
        Serving,
        "_goes_by_proof",
        "if self.has_met_all:",
        "if True:",
    ),
    Mutant(
        "not-in-sync-and-goes-by-a-proof",
        Serving,
        "dead",
        "not self.was_in_sync or",
        "",
    ),
    Mutant(
        "goes-by-the-proof-of-an-earlier-process",
        Member,
        "peer_up",
        "self.proven.discard(member)",
        "pass",
    ),
    Mutant(
        "parks-and-serves-again-before-all-know",
        Serving,
        "stop_serving",
        "self.final = Parked()",
        "self.final = Parked(all_know=True)",
    ),
    Mutant(
        "begins-without-being-let-ahead",
        Serving,
        "_is_let_ahead",
        "if asked <= self.let_by:",
        "if True:",
    ),
)

SHOWN_BY: Final = {
    "dead-and-the-others-not-compared": 151,
    "not-in-sync-and-goes-by-a-proof": 206,
    "goes-by-the-proof-of-an-earlier-process": 10632,
    "parks-and-serves-again-before-all-know": 100000364,
    "begins-without-being-let-ahead": 23790,
    "no-fence-check-before-a-write": 30,
    "no-fence-check-after-a-sync": 250,
    "lease-not-looked-at-when-the-disk-alone-confirms": 42,
    "lost-and-not-waited-for": 16,
    "records-that-are-not-synced-not-told": 14734,
    "lease-not-looked-at-before-a-delivery": 78,
    "goes-on-before-it-may": 4,
    "a-higher-epoch-of-another-ignored": 737,
    "in-sync-and-not-waited-for": 0,
    "no-prefix-check": 23,
    "handed-over-to-one-that-has-not-answered": 7103,
    "a-silent-replica-waited-for": 715,
    "counted-before-the-voters-know-its-node": 754,
    "lease-counted-longer-than-voters-do": 78,
    "no-pre-vote": 0,
    "granted-for-every-boot": 210004207,
    "what-was-accepted-not-told": 32,
}
"""The seed that objects to each."""
