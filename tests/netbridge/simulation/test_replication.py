"""Replicated nodes in a world with faults: what was confirmed lasts, whatever the seed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shmbroker.netbridge.election.threshold import of_lives
from shmbroker.netbridge.member.draining import Draining
from shmbroker.netbridge.simulation.replication import drains, lives, one_host, ordered
from shmbroker.netbridge.simulation.replication.fault import KINDS
from shmbroker.netbridge.simulation.replication.in_cluster import ClusterMember
from shmbroker.netbridge.simulation.replication.run import faults_of, simulate
from shmbroker.netbridge.simulation.replication.scene import Scene
from shmbroker.netbridge.simulation.shrink import explained
from tests.netbridge.simulation.mutants import Mutant
from tests.netbridge.simulation.replication_mutants import (
    MUTANTS,
    NOT_LEARNT,
    OF_ONE_HOST,
    SHOWN_BY,
)
from tests.netbridge.simulation.replication_worlds import (
    WORLDS,
    SmallWorld,
    struck,
)

SEEDS = 1000
PARTS = 10
MUTANT_SEEDS = 20
SHOWN_BY_LIVES = 242
SHOWN_BY_AN_OLD_LIST = 22001691
SHOWN_BY_BOTH_IN_DOUBT = 23005696
SHOWN_BY_ASKING_BEFORE = 24000151
SHOWN_BY_A_CLOSED_ONE_THAT_HAD_LEFT = 55003553
SHOWN_BY_THE_DEATH_OF_AN_EARLIER_PROCESS = 90000300
SHOWN_BY_A_STOP_BEHIND_THE_FIRST_RECORD = 90001306
SHOWN_BY_ONE_THAT_LEFT_BEFORE_IT_HAD_THE_RECORD = 140005058
SHOWN_BY_A_STOP_OF_WHICH_NOT_ALL_HEARD = 220001239
SHOWN_BY_ONE_THAT_LEFT_AND_WAS_NOT_DROPPED = 290036328
SEEDS_OF_LIVES = 200
SEEDS_OF_DRAINS = 100
SEEDS_OF_ONE_HOST = 200
SEEDS_OF_ORDERS = 60
SHOWN_BY_DRAINS = 30
PARTS_OF_LIVES = 4
ISOLATED_SEEDS = 40


@pytest.mark.parametrize("part", range(PARTS))
def test_seeds(part: int) -> None:
    for seed in range(part * SEEDS // PARTS, (part + 1) * SEEDS // PARTS):
        outcome = simulate(seed)
        assert not outcome.wrong, explained(outcome, "replication")


@pytest.mark.parametrize("part", range(PARTS_OF_LIVES))
def test_seeds_with_lives_of_a_cluster_as_voters(part: int) -> None:
    first = part * SEEDS_OF_LIVES // PARTS_OF_LIVES
    for seed in range(first, first + SEEDS_OF_LIVES // PARTS_OF_LIVES):
        outcome = lives.simulate(seed)
        assert not outcome.wrong, explained(outcome, "lives")


def test_seeds_with_members_of_one_host() -> None:
    """Nobody is asked, and its kernel tells each one of a death."""
    for seed in range(SEEDS_OF_ONE_HOST):
        outcome = one_host.simulate(seed)
        assert not outcome.wrong, explained(outcome, "one_host")


def test_seeds_with_faults_in_one_order() -> None:
    for seed in range(SEEDS_OF_ORDERS):
        outcome = ordered.simulate(seed)
        assert not outcome.wrong, explained(outcome, "ordered")


def test_seeds_with_backups_that_give_all_to_another_node() -> None:
    """Each message is at that node, or at this one, whoever is live."""
    scenes: list[Scene] = []
    for seed in range(SEEDS_OF_DRAINS):
        outcome = drains.simulate(seed, scenes=scenes)
        assert not outcome.wrong, explained(outcome, "drains")
    assert sum(each.watch.drained for each in scenes) > 5
    assert sum(len(given) for each in scenes for given in each.elsewhere.values()) > 20


def test_a_backup_that_empties_its_journal_before_all_is_elsewhere_is_caught() -> None:
    given = Draining.has_given

    def too_soon(self: Draining, epoch: int, *, is_whole: bool, now: float) -> None:
        given(self, epoch, is_whole=True, now=now)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Draining, "has_given", too_soon)
        assert "is lost" in drains.simulate(SHOWN_BY_DRAINS).wrong
    assert not drains.simulate(SHOWN_BY_DRAINS).wrong


def test_a_member_that_counts_only_the_lives_that_it_has_met_is_caught() -> None:
    """Not the most that were ever seen: two halves would each have enough."""

    def connected(self: ClusterMember, other: str) -> None:
        original(self, other)
        electorate = self.machine.options.electorate
        assert electorate is not None
        fewer = replace(electorate, needed=of_lives(len(self.known) + 1))
        self.does(self.machine.voters_are(fewer, self.host.clock))

    original = ClusterMember.connected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClusterMember, "connected", connected)
        seeds = range(SHOWN_BY_LIVES, SHOWN_BY_LIVES + MUTANT_SEEDS)
        assert any(lives.simulate(seed).wrong for seed in seeds)


def test_a_voter_that_the_live_could_not_reach_learns_its_list() -> None:
    """Else each of both members misses a voter, and none of them begins."""
    with NOT_LEARNT.applied():
        assert "does not come to rest" in lives.simulate(SHOWN_BY_AN_OLD_LIST).wrong
    assert not lives.simulate(SHOWN_BY_AN_OLD_LIST).wrong


def test_who_is_in_doubt_as_well_as_its_partner_begins_what_it_was_granted() -> None:
    """Both hosts lost power, the newer one after it was granted the next epoch: it gave the role to
    the other one, which lacked something, again and again."""
    assert not simulate(SHOWN_BY_BOTH_IN_DOUBT).wrong


def test_who_asks_before_it_has_met_its_partner_says_when_it_has() -> None:
    """Both hosts lost power, and an earlier vote had promises: both asked on for ever, as if they
    had not met."""
    assert not simulate(SHOWN_BY_ASKING_BEFORE).wrong


def test_a_backup_that_had_left_before_it_drained_waits_for_its_original_again() -> None:
    """It was stopped while it put its original on the list, so no voter knew that one; and both
    waited for ever, because its journal, emptied, counts from 1 again."""
    assert not drains.simulate(SHOWN_BY_A_CLOSED_ONE_THAT_HAD_LEFT).wrong


def test_who_has_not_met_a_member_again_tells_nobody_that_it_is_dead() -> None:
    """Two were live at a time: one took over from a live that stood still, because a third one,
    which had no link to that, still told of the death of its process before."""
    assert not one_host.simulate(SHOWN_BY_THE_DEATH_OF_AN_EARLIER_PROCESS).wrong


def test_who_is_stopped_while_it_becomes_live_still_tells_others_so() -> None:
    """Two began the same epoch: one was told to stop behind its first record, and met the other
    before it had ended."""
    assert not one_host.simulate(SHOWN_BY_A_STOP_BEHIND_THE_FIRST_RECORD).wrong


def test_a_record_that_hands_over_to_one_that_has_left_holds_up_nobody() -> None:
    """Another member had that record, and came before the live that was stopped: each of them
    waited for the other one."""
    assert not one_host.simulate(SHOWN_BY_ONE_THAT_LEFT_BEFORE_IT_HAD_THE_RECORD).wrong


def test_a_live_that_died_before_all_knew_that_it_parks_is_not_waited_for() -> None:
    """It waited for a backup that goes before it, and that one waited for its live to serve."""
    assert not one_host.simulate(SHOWN_BY_A_STOP_OF_WHICH_NOT_ALL_HEARD).wrong


def test_each_frame_is_looked_at_until_one_that_has_left_is_dropped() -> None:
    """Its live had nothing else to look at, and confirms would have waited for it."""
    assert not one_host.simulate(SHOWN_BY_ONE_THAT_LEFT_AND_WAS_NOT_DROPPED).wrong


def test_a_seed_is_the_same_run_each_time() -> None:
    assert simulate(5, traced=True) == simulate(5, traced=True)


def test_all_kinds_of_faults_happen() -> None:
    assert {fault.kind for seed in range(SEEDS) for fault in faults_of(seed)} == set(KINDS)


def test_what_is_to_be_seen_happens() -> None:
    scenes: list[Scene] = []
    for seed in range(60):
        simulate(seed, scenes=scenes)
    for name in ("takeovers", "handovers", "votes", "synced"):
        assert sum(getattr(each.watch, name) for each in scenes) > 5, name


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_each_guard_is_needed(mutant: Mutant) -> None:
    first = SHOWN_BY[mutant.name]
    seeds = range(first, first + MUTANT_SEEDS)
    with mutant.applied():
        failed = next((seed for seed in seeds if simulate(seed).wrong), None)
    assert failed is not None, "no seed objects"
    assert not simulate(failed).wrong, "with the guard it is right"


@pytest.mark.parametrize("mutant", OF_ONE_HOST, ids=[each.name for each in OF_ONE_HOST])
def test_each_guard_of_members_of_one_host_is_needed(mutant: Mutant) -> None:
    seed = SHOWN_BY[mutant.name]
    with mutant.applied():
        assert one_host.simulate(seed).wrong, "nothing objects"
    assert not one_host.simulate(seed).wrong, "with the guard it is right"


def test_a_network_check_decides_where_nobody_is_asked() -> None:
    for seed in range(ISOLATED_SEEDS):
        assert not struck(seed, ordered.isolated_host), seed


@pytest.mark.parametrize("world", WORLDS, ids=[each.mutant.name for each in WORLDS])
def test_each_guard_of_a_small_world_is_needed(world: SmallWorld) -> None:
    seeds = range(world.seed, world.seed + MUTANT_SEEDS)
    with world.mutant.applied():
        failed = next((seed for seed in seeds if struck(seed, world.faults)), None)
    assert failed is not None, "no seed objects"
    if world.mutant.behind is not None:
        with world.mutant.behind.applied():
            assert not struck(failed, world.faults), "one of both guards is enough"
    assert not struck(failed, world.faults), "with the guards it is right"
