"""Small worlds of replicated nodes with faults in one order: for guards that random faults do not
show.  Their times are the seed's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from shmbroker.netbridge.election.voter import Voter
from shmbroker.netbridge.member.founding import Founding
from shmbroker.netbridge.member.passive import Passive
from shmbroker.netbridge.member.serving import Serving
from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.replication.run import simulate
from shmbroker.netbridge.simulation.replication.scene import Cast
from tests.netbridge.simulation.mutants import Mutant

PAIR: Final = Cast(
    members=2, voters=1, max_replicas=1, splits=False, acks_when_synced=False, fails_back=False,
    has_command=False,
)  # fmt: skip
"""A replica confirms what it has in memory."""
CHECKED: Final = replace(PAIR, voters=0, splits=True, is_checked=True)
"""Nobody is asked, whoever loses the other one goes on alone, and `network-check` says who may."""

ONE_HOST: Final = replace(PAIR, voters=0, is_one_host=True)
"""Whose kernel says that a process is no more."""


@dataclass(frozen=True, slots=True)
class SmallWorld:
    mutant: Mutant
    faults: Callable[[Random], list[Fault]]
    seed: int
    """That objects to the mutant."""
    cast: Cast = PAIR

    @property
    def wrong(self) -> str:
        return struck(self.seed, self.faults, self.cast)


def struck(seed: int, faults: Callable[[Random], list[Fault]], cast: Cast) -> str:
    """What is wrong with it."""
    those = sorted(faults(Random(seed)), key=lambda fault: fault.time)
    return simulate(seed, those, casting=lambda _: cast).wrong


def voter_without_power(random: Random) -> list[Fault]:
    """Its disk is slow, so what it said last may be gone, while it is asked who is to be live."""
    at = random.uniform(0.8, 3.0)
    return [
        Fault(at, "slow-disk", "v1", 2.0),
        Fault(at + random.uniform(0.0, 0.3), "isolated", "a", random.uniform(0.3, 2.0)),
        Fault(at + random.uniform(0.1, 1.0), "power", "v1", random.uniform(0.05, 0.5)),
        Fault(at + random.uniform(0.1, 1.5), "stand-still", random.choice("ab"),
              random.uniform(0.05, 0.5)),
    ]  # fmt: skip


def blow_upon_blow(random: Random) -> list[Fault]:
    at = random.uniform(0.8, 3.0)
    kinds = ("isolated", "slow-disk", "power", "kill", "cut", "stand-still", "hand-over")
    return [
        Fault(
            at + random.uniform(0.0, 1.0), random.choice(kinds), host,
            random.choice((0.02, 0.1, 0.5, 1.5)), "a" if host == "b" else "b",
        )
        for host in random.choices(("a", "b", "v1"), k=4)
    ]  # fmt: skip


def isolated_host(random: Random) -> list[Fault]:
    """So the other one is not; longer than either needs to go on alone."""
    return [Fault(random.uniform(0.8, 2.5), "isolated", random.choice("ab"), 1.5)]


def parked_and_restarted(random: Random) -> list[Fault]:
    """A group is parked, its backup is restarted meanwhile, and hears that its live is back, dead,
    and then hears of it no more."""
    at = random.uniform(0.8, 2.0)
    back = at + random.uniform(0.6, 1.0)
    killed = back + random.uniform(0.2, 0.6)
    return [
        Fault(at, "park", "a", back - at, "b"),
        Fault(at + random.uniform(0.2, 0.6), "stop", "b", random.uniform(0.05, 0.3), "a"),
        Fault(killed, "kill", "a", 1.5, "b"),
        Fault(killed + random.uniform(0.02, 0.1), "isolated", "a", 2.9, "b"),
    ]  # fmt: skip


def restarted_host(random: Random) -> list[Fault]:
    """Of a replica that has not synced yet what it has confirmed; then its live is cut off."""
    at = random.uniform(0.8, 2.5)
    return [
        Fault(at, "slow-disk", "b", 1.5),
        Fault(at + random.uniform(0.05, 0.5), "power", "b", 1.0),
        Fault(at + random.uniform(0.3, 0.7), "isolated", "a", 2.5),
    ]


def lease_begins_anew(random: Random) -> list[Fault]:
    """While a voter promises the epoch: the live has closed its silent link to it, and is back
    before the backup, which stood still, asks to accept.  The live has not missed its backup yet.
    """
    silent = random.uniform(1.4, 2.0)
    at = silent + random.uniform(0.62, 0.85)
    return [
        Fault(0.8, "hand-over", "a", 0.0, "b"),  # so that a loss is told to the backup only
        Fault(silent, "one-way", "v1", at - silent + random.uniform(-0.05, 0.12), "b"),
        Fault(at - 0.005, "partition", "a", 1.0, "b"),
        Fault(at, "half-open", "a", 0.0),
        Fault(at + random.uniform(0.0, 0.12), "stand-still", "a", random.uniform(0.08, 0.2)),
    ]


def list_is_lost(random: Random) -> list[Fault]:
    """The live loses power before it has synced that its first backup is in sync, serves again by
    itself, and is cut off from it.

    That a record is synced and that all who are on its list have it (`_is_safe`) are two guards
    behind the one of this world.  The machine hears of a record when it is synced, and a backup
    that has not got it is not eligible by its own journal; so neither has a seed of its own.
    """
    slow = random.uniform(0.475, 0.56)
    at = slow + random.uniform(0.05, 0.5)
    return [
        Fault(slow, "slow-disk", "a", 0.6),
        Fault(at, "power", "a", 0.1),
        Fault(at - 0.001, "partition", "a", 3.0, "b"),
        Fault(at + random.uniform(0.8, 1.4), "isolated", "a", 1.5),
    ]


def restarted_voter(random: Random) -> list[Fault]:
    """Of a lease that is not over: the live hears nothing of that, and the backup asks at once."""
    at = random.uniform(1.4, 2.4)
    again = at + random.uniform(0.08, 0.2)
    return [
        Fault(0.8, "hand-over", "a", 0.0, "b"),
        Fault(at - 0.002, "partition", "a", 1.2, "b"),
        Fault(at - 0.001, "no-voters", "a", again - at + random.uniform(0.02, 0.1)),
        Fault(at, "half-open", "a", 0.0),
        Fault(again, "power", "v1", 0.05),
        Fault(again, "one-way", "b", 0.4, "v1"),
    ]


def new_disk(random: Random) -> list[Fault]:
    """Of the preferred member; the other one, which serves, is killed, and both come back."""
    at = random.uniform(1.6, 2.4)
    return [
        Fault(0.8, "hand-over", "a", 0.0, "b"),
        Fault(at, "replaced", "a", 0.0),
        Fault(at + random.uniform(0.3, 0.9), "kill", "b", 0.05),
    ]


def grant_of_another_boot(random: Random) -> list[Fault]:
    """The live goes on without its backup; before its disk has what both had confirmed, its host
    loses power, and it is granted what it was granted."""
    slow = random.uniform(1.2, 1.5)
    lost = slow + random.uniform(0.2, 0.5)
    at = lost + random.uniform(0.2, 0.5)
    return [
        Fault(slow, "slow-disk", "b", 1.5),
        Fault(slow + 0.01, "slow-disk", "a", 1.4),
        Fault(lost, "kill", "b", 0.02),
        Fault(at - 0.001, "partition", "a", 2.5, "b"),
        Fault(at, "power", "a", 0.1),
    ]


WORLDS: Final = (
    SmallWorld(
        Mutant(
            "grant-of-another-boot-begun",
            Passive,
            "passive_won",
            "self._is_meant(grant) or self.has_met_all",
            "True",
        ),
        grant_of_another_boot,
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
        lease_begins_anew,
        seed=152,
    ),
    SmallWorld(
        Mutant(
            "no-lease-after-a-restart",
            Voter,
            "__init__",
            "{node: now + self._lease_of(node) for node in ledgers}",
            "{}",
        ),
        restarted_voter,
        seed=242,
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
        list_is_lost,
        seed=59,
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
        restarted_host,
        seed=0,
    ),
    SmallWorld(
        Mutant("vote-told-before-it-is-synced", Voter, "_say", "self._kept >= self._keeps", "True"),
        voter_without_power,
        seed=1529,
    ),
    SmallWorld(
        Mutant(
            "promise-not-kept",
            Voter,
            "_judged",
            "if (grant.epoch, question.ballot) < ledger.promised:",
            "if False:",
        ),
        blow_upon_blow,
        seed=96,
    ),
    SmallWorld(
        Mutant("isolated-and-goes-on", Serving, "_go_on", "if self.is_isolated:", "if False:"),
        isolated_host,
        seed=1,
        cast=CHECKED,
    ),
    SmallWorld(
        Mutant(
            "isolated-and-takes-over",
            Serving,
            "_is_held_back",
            "return bool(why)",
            "return False",
        ),
        isolated_host,
        seed=0,
        cast=CHECKED,
    ),
    SmallWorld(
        Mutant(
            "back-and-nobody-met",
            Serving,
            "goes_on",
            "self.retry_at = at",
            "self.retry_at = 0.0",
        ),
        isolated_host,
        seed=0,
        cast=CHECKED,
    ),
    SmallWorld(
        Mutant("back-and-live-at-once", Serving, "reaches", "= at", "= 0.0"),
        isolated_host,
        seed=1,
        cast=CHECKED,
    ),
    SmallWorld(
        Mutant(
            "a-link-lost-and-not-looked-around",
            Serving,
            "looks_around",
            "and not self.isolation",
            "and False",
        ),
        isolated_host,
        seed=0,
        cast=CHECKED,
    ),
    SmallWorld(
        Mutant("founds-beside-a-node", Founding, "_founds", "elif with_node:", "elif False:"),
        new_disk,
        seed=7,
        cast=replace(PAIR, newcomers_found=True),
    ),
    SmallWorld(
        Mutant(
            "parked-and-not-for-long",
            Passive,
            "_start",
            "elif self.is_parked and self.last.holder != self.me:",
            "elif False:",
        ),
        parked_and_restarted,
        seed=223,
        cast=ONE_HOST,
    ),
)
