"""The same world with faults in one order, so that what is rare otherwise meets.

Their times are the seed's, as far as they may be.  What has no line gets one at the next moment of
dialling, so some faults are placed around that one.  `tests/netbridge/simulation/
replication_worlds.py` says which guard each order is for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil
from random import Random
from typing import Final

from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.replication import run
from shmbroker.netbridge.simulation.replication.dialled import DIAL_SECONDS
from shmbroker.netbridge.simulation.replication.scene import Cast, Scene
from shmbroker.netbridge.simulation.run import Outcome

Faults = Callable[[Random], list[Fault]]

PAIR: Final = Cast(
    members=2, voters=1, max_replicas=1, splits=False, acks_when_synced=False, fails_back=False,
    has_command=False,
)  # fmt: skip
"""A replica confirms what it has in memory."""
THREE: Final = replace(PAIR, members=3, max_replicas=2)
TWO_VOTERS: Final = replace(PAIR, voters=2)
"""Who are asked for a promise first, and then to accept: the only one is asked for both at once."""
THREE_AND_TWO_VOTERS: Final = replace(THREE, voters=2)
CHECKED: Final = replace(PAIR, voters=0, splits=True, is_checked=True)
"""Nobody is asked, whoever loses the other one goes on alone, and `network-check` says who may."""
ONE_HOST: Final = replace(PAIR, voters=0, is_one_host=True)
"""Whose kernel says that a process is no more."""
NEW_DISK: Final = replace(PAIR, newcomers_found=True)


def dial_after(time: float) -> float:
    return ceil(time / DIAL_SECONDS) * DIAL_SECONDS


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


def restarted_and_left_behind(random: Random) -> list[Fault]:
    """A replica whose host was restarted before it had synced what it has confirmed follows again,
    gets nothing more, and asks in its new boot when its live is cut off."""
    dial = dial_after(random.uniform(1.4, 2.4))
    down = random.uniform(0.02, 0.05)
    at = dial - down - 0.08
    return [
        Fault(at - 0.4, "slow-disk", "b", 0.4),
        Fault(at - 0.001, "no-voters", "a", dial + 0.02 - at),
        Fault(at, "power-for", "b", down),
        Fault(dial + random.uniform(0.014, 0.02), "one-way", "a", 4.0, "b"),
        Fault(dial + 0.25, "isolated", "a", 3.0),
    ]


def list_is_lost(random: Random) -> list[Fault]:
    """The live loses power before it has synced that its first backup is in sync, serves again by
    itself, and is cut off from it."""
    slow = random.uniform(0.475, 0.56)
    at = slow + random.uniform(0.05, 0.5)
    return [
        Fault(slow, "slow-disk", "a", 0.6),
        Fault(at, "power", "a", 0.1),
        Fault(at - 0.001, "partition", "a", 3.0, "b"),
        Fault(at + random.uniform(0.8, 1.4), "isolated", "a", 1.5),
    ]


def new_disk(random: Random) -> list[Fault]:
    """Of the preferred member; the other one, which serves, is killed, and may not serve again for
    a while.  Both are there in time to meet: who meets nobody founds a node."""
    at = random.uniform(1.6, 2.4)
    killed = at + random.uniform(0.3, 0.9)
    return [
        Fault(0.8, "hand-over", "a", 0.0, "b"),
        Fault(at, "replaced", "a", 0.0),
        Fault(killed - 0.001, "no-voters", "b", 1.5),
        Fault(killed, "kill-for", "b", random.uniform(0.05, 0.2)),
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


def lease_begins_anew(random: Random) -> list[Fault]:
    """While voters promise the epoch: the live has closed its silent links to them, and is back
    before the backup, which stood still, asks to accept.  The live has not missed its backup yet.
    """
    silent = random.uniform(1.4, 2.0)
    dial = dial_after(silent + 0.9)  # of the backup; the live dials at the next one
    heard = dial + random.uniform(0.02, 0.09)
    still = dial + random.uniform(0.02, 0.03)
    woken = dial + DIAL_SECONDS + random.uniform(0.02, 0.06)
    return [
        Fault(0.8, "hand-over", "a", 0.0, "b"),  # so that a loss is told to the backup only
        *(Fault(silent, "one-way", voter, heard - silent, "b") for voter in ("v1", "v2")),
        Fault(dial - 0.005, "partition", "a", 1.0, "b"),
        Fault(dial - 0.004, "half-open", "a", 0.0),
        Fault(still, "stand-still", "a", woken - still),
    ]


def cut_from_one_that_stands_still(random: Random) -> list[Fault]:
    """Who was linked to the live asks the voter at once, and the live has not heard of the loss."""
    dial = dial_after(random.uniform(1.0, 2.4))
    still = dial - random.uniform(0.01, 0.05)
    return [
        Fault(still, "stand-still", "a", random.uniform(0.2, 0.5)),
        Fault(dial - 0.005, "cut", "a", 0.0),
    ]


def restarted_voter(random: Random) -> list[Fault]:
    """Of a lease that is not over: the live hears nothing of that, and the backup asks at once."""
    dial = dial_after(random.uniform(1.4, 2.4))  # of the live; the backup dials at the next one
    at = dial + random.uniform(0.03, 0.04)
    return [
        Fault(0.8, "hand-over", "a", 0.0, "b"),
        Fault(dial - 0.006, "partition", "a", 1.2, "b"),
        Fault(dial - 0.005, "no-voters", "a", at - dial + 0.04),
        Fault(dial - 0.004, "half-open", "a", 0.0),
        Fault(at, "power-for", "v1", random.uniform(0.02, 0.05)),
        Fault(at, "one-way", "b", 0.4, "v1"),
    ]


def voter_restarted_after_its_vote(random: Random) -> list[Fault]:
    """The holder has not begun yet, and from now on only the live of before reaches the voter."""
    return _voter_after_its_vote(random, "b", 1.0)


def voter_without_power(random: Random) -> list[Fault]:
    """The same; its disk is slow, so what it said last may be gone."""
    return _voter_after_its_vote(random, "v1", 0.7)


def _voter_after_its_vote(random: Random, slow: str, seconds: float) -> list[Fault]:
    at = random.uniform(1.2, 2.4)
    return [
        Fault(at, "isolated", "a", 1.0),
        Fault(at + 0.001, "partition", "a", 3.0, "b"),
        Fault(at + 0.3, "slow-disk", slow, seconds),
        Fault(at + 1.0, "power-for", "v1", random.uniform(0.02, 0.05)),
        Fault(at + 1.0, "no-voters", "b", 2.0),
    ]


def voters_restarted_after_two_promises(random: Random) -> list[Fault]:
    """To two backups, which stand still before they hear of it, and until the lease is over that
    voters keep after their restart."""
    at = random.uniform(1.4, 2.4)
    first = at + random.uniform(0.075, 0.085)  # they compare before they ask
    second = at + random.uniform(0.12, 0.135)
    woken = at + 0.91
    return [
        Fault(at - 0.1, "partition", "b", 3.0, "c"),
        Fault(at, "kill", "a", 0.0),
        Fault(at + 0.012, "isolated", "a", 3.0),
        Fault(first, "stand-still", "b", woken - first),
        Fault(second, "stand-still", "c", woken - second),
        *(Fault(at + 0.18, "power-for", voter, 0.03) for voter in ("v1", "v2")),
        Fault(woken, "slow-disk", "b", 0.3),
        Fault(woken, "slow-disk", "c", 0.3),
    ]


def two_before_the_only_voter(random: Random) -> list[Fault]:
    """They hear nothing of each other, and it would say yes to both."""
    at = random.uniform(1.2, 2.4)
    return [
        Fault(at - 0.1, "partition", "b", 3.0, "c"),
        Fault(at, "kill", "a", 0.0),
        Fault(at + 0.012, "isolated", "a", 3.0),
    ]


ORDERS: Final[tuple[tuple[Faults, Cast], ...]] = (
    (isolated_host, CHECKED),
    (parked_and_restarted, ONE_HOST),
    (restarted_host, PAIR),
    (restarted_and_left_behind, PAIR),
    (list_is_lost, PAIR),
    (new_disk, NEW_DISK),
    (grant_of_another_boot, PAIR),
    (lease_begins_anew, TWO_VOTERS),
    (cut_from_one_that_stands_still, PAIR),
    (restarted_voter, PAIR),
    (voter_restarted_after_its_vote, PAIR),
    (voter_without_power, PAIR),
    (voters_restarted_after_two_promises, THREE_AND_TWO_VOTERS),
    (two_before_the_only_voter, THREE),
)


def order(seed: int) -> tuple[Faults, Cast]:
    return ORDERS[seed % len(ORDERS)]


def faults_of(seed: int) -> list[Fault]:
    faults, _ = order(seed)
    return drawn(seed, faults)


def drawn(seed: int, faults: Faults) -> list[Fault]:
    return sorted(faults(Random(seed)), key=lambda fault: fault.time)


def simulate(
    seed: int,
    faults: list[Fault] | None = None,
    *,
    traced: bool = False,
    scenes: list[Scene] | None = None,
) -> Outcome:
    _, cast = order(seed)
    given = faults_of(seed) if faults is None else faults
    return run.simulate(seed, given, traced=traced, scenes=scenes, casting=lambda _: cast)
