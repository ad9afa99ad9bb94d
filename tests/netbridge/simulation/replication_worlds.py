"""Guards that random faults do not show, and the order of faults that shows each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from shmbroker.netbridge.election.voter import Voter
from shmbroker.netbridge.member.founding import Founding
from shmbroker.netbridge.member.passive import Passive
from shmbroker.netbridge.member.serving import Serving
from shmbroker.netbridge.simulation.replication import ordered
from shmbroker.netbridge.simulation.replication.run import simulate
from tests.netbridge.simulation.mutants import Mutant

CASTS: Final = dict(ordered.ORDERS)


@dataclass(frozen=True, slots=True)
class SmallWorld:
    mutant: Mutant
    faults: ordered.Faults
    seed: int
    """That objects to the mutant."""


def struck(seed: int, faults: ordered.Faults) -> str:
    """What is wrong with it."""
    cast = CASTS[faults]
    return simulate(seed, ordered.drawn(seed, faults), casting=lambda _: cast).wrong


WORLDS: Final = (
    SmallWorld(
        Mutant(
            "grant-of-another-boot-begun",
            Passive,
            "passive_won",
            "self._is_meant(grant) or self.has_met_all",
            "True",
        ),
        ordered.grant_of_another_boot,
        seed=2,
    ),
    SmallWorld(
        Mutant(
            "lease-not-looked-at-when-accepting",
            Voter,
            "_may_accept",
            "not is_consented and now < self.leased_until.get(node, 0.0)",
            "False",
        ),
        ordered.lease_begins_anew,
        seed=0,
    ),
    SmallWorld(
        Mutant("a-lost-link-taken-for-a-release", Voter, "unlinked", "if is_closed:", "if True:"),
        ordered.cut_from_one_that_stands_still,
        seed=0,
    ),
    SmallWorld(
        Mutant(
            "no-lease-after-a-restart",
            Voter,
            "__init__",
            "{node: now + self._lease_of(node) for node in ledgers}",
            "{}",
        ),
        ordered.restarted_voter,
        seed=0,
    ),
    SmallWorld(
        Mutant(
            "list-told-before-it-holds",
            Serving,
            "_admit",
            "self.does(Write(Copies(self.copies)))",
            "self.does(Write(Copies(self.copies))); self.listed = self.copies; "
            "self.version += 1; self.renew(self.voters, now)",
        ),
        ordered.list_is_lost,
        seed=9,
    ),
    SmallWorld(
        Mutant(
            "voter-forgets-how-long-a-lease-is",
            Voter,
            "__init__",
            "self.ledgers = dict(ledgers)",
            "self.ledgers = {n: replace(each, lease_ms=0) for n, each in ledgers.items()}",
        ),
        ordered.restarted_voter,
        seed=0,
    ),
    SmallWorld(
        Mutant(
            "voter-forgets-what-it-has-accepted",
            Voter,
            "__init__",
            "self.ledgers = dict(ledgers)",
            "self.ledgers = {n: replace(each, accepted=None) for n, each in ledgers.items()}",
        ),
        ordered.voter_restarted_after_its_vote,
        seed=0,
    ),
    SmallWorld(
        Mutant(
            "voter-forgets-what-it-has-promised",
            Voter,
            "__init__",
            "self.ledgers = dict(ledgers)",
            "self.ledgers = {n: replace(each, promised=None) for n, each in ledgers.items()}",
        ),
        ordered.voters_restarted_after_two_promises,
        seed=3,
    ),
    SmallWorld(
        # That a record is synced is looked at as well, and shown by nothing: the machine is told
        # of a record and that it is synced in one turn, here as in a broker.
        Mutant(
            "list-told-before-all-on-it-have-it",
            Serving,
            "_is_safe",
            "all(self._has(each) >= number for each in members)",
            "True",
        ),
        ordered.restarted_and_left_behind,
        seed=0,
    ),
    SmallWorld(
        Mutant(
            "rebooted-replica",
            Voter,
            "_is_on_list",
            "copy.allows(holder, question.boot)",
            "copy.member == holder",
            behind=Mutant(
                "rebooted-replica-that-asks",
                Serving,
                "is_eligible",
                "copy.allows(self.me, self.boot)",
                "copy.member == self.me",
            ),
        ),
        ordered.restarted_host,
        seed=0,
    ),
    SmallWorld(
        Mutant("vote-told-before-it-is-synced", Voter, "_say", "self._kept >= self._keeps", "True"),
        ordered.voter_without_power,
        seed=0,
    ),
    SmallWorld(
        Mutant(
            "promise-not-kept",
            Voter,
            "_judged",
            "if (grant.epoch, question.ballot) < ledger.promised:",
            "if False:",
        ),
        ordered.voters_restarted_after_two_promises,
        seed=0,
    ),
    SmallWorld(
        Mutant(
            "accepted-at-once-beside-a-promise",
            Voter,
            "_judged",
            "if question.step is Step.AT_ONCE and is_other and ledger.promised[0] == grant.epoch:",
            "if False:",
        ),
        ordered.two_before_the_only_voter,
        seed=0,
    ),
    SmallWorld(
        Mutant("isolated-and-goes-on", Serving, "_go_on", "if self.is_isolated:", "if False:"),
        ordered.isolated_host,
        seed=1,
    ),
    SmallWorld(
        Mutant(
            "isolated-and-takes-over",
            Serving,
            "_is_held_back",
            "return bool(why)",
            "return False",
        ),
        ordered.isolated_host,
        seed=0,
    ),
    SmallWorld(
        Mutant(
            "back-and-nobody-met",
            Serving,
            "goes_on",
            "self.retry_at = at",
            "self.retry_at = 0.0",
        ),
        ordered.isolated_host,
        seed=0,
    ),
    SmallWorld(
        Mutant("back-and-live-at-once", Serving, "reaches", "= at", "= 0.0"),
        ordered.isolated_host,
        seed=1,
    ),
    SmallWorld(
        Mutant(
            "a-link-lost-and-not-looked-around",
            Serving,
            "looks_around",
            "and not self.isolation",
            "and False",
        ),
        ordered.isolated_host,
        seed=0,
    ),
    SmallWorld(
        Mutant("founds-beside-a-node", Founding, "_founds", "elif with_node:", "elif False:"),
        ordered.new_disk,
        seed=7,
    ),
    SmallWorld(
        Mutant(
            "parked-and-not-for-long",
            Passive,
            "_start",
            "elif self.is_parked and self.last.holder != self.me:",
            "elif False:",
        ),
        ordered.parked_and_restarted,
        seed=223,
    ),
)
