"""The lives of a cluster as voters: a backup serves by votes of the others, and not without."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.clustered.owner import VOTES
from shmbroker.netbridge.witness import state
from tests.netbridge.clustered.conftest import Cluster
from tests.support.until import until


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """While a member is passive nobody comes to it: it has to look for others than itself."""
    cluster.looks_for = ("north", "west")
    return cluster


def with_two_others(cluster: Cluster) -> Cluster:
    """Three lives, of which one has a backup."""
    for name in ("north", "west"):
        cluster.add(name).start()
    cluster.add_pair("east")
    cluster.starts("east")
    cluster.sees("east2", "north", "west")
    return cluster


def test_a_live_is_killed_and_its_backup_wins_by_votes_of_the_others(cluster: Cluster) -> None:
    with_two_others(cluster)
    told = cluster.told("east2")
    assert (told["standing"], told["lives"], told["needed"]) == ("backup", 3, 2)
    cluster.publishes("east", b"one coffee")
    cluster["east"].kill()
    cluster["east2"].becomes("live")
    assert "vote won" in cluster["east2"].events()
    assert cluster.bodies("east2") == [b"one coffee"]
    told = cluster.sees("north", "east2", "west")
    assert told["lives"] == 3
    cluster["east"].start()
    cluster.says("east", "in sync")


def test_a_minority_never_activates_until_a_node_is_forgotten(cluster: Cluster) -> None:
    with_two_others(cluster)
    cluster.publishes("east", b"one coffee")
    cluster["west"].kill()
    cluster.sees("east2", "north", missing=("west",))
    cluster["east"].kill()
    cluster.says("east2", "asking")
    cluster.sees("north", missing=("east", "west"))
    assert cluster.told("east2")["can-vote"] is False
    assert cluster["east2"].status.state == "passive"
    assert "vote won" not in cluster["east2"].events()
    assert cluster.order("north", verb="forget", node="west") == ""
    cluster["east2"].becomes("live")
    assert cluster.bodies("east2") == [b"one coffee"]


def test_who_is_forgotten_is_voted_for_no_more(cluster: Cluster) -> None:
    with_two_others(cluster)
    node = bytes.fromhex(cluster.told("east")["node"])
    votes = cluster["north"].folder / "data" / VOTES
    until(lambda: node in state.read(votes)[1])
    backup = cluster["east2"].process
    assert backup is not None
    backup.stop()  # before it can ask for the next epoch, which would be kept
    cluster["east"].kill()
    cluster["east2"].kill()
    cluster.sees("north", "west", missing=("east",))
    assert cluster.order("north", verb="forget", node="east") == ""
    for name in ("north", "west"):
        votes = cluster[name].folder / "data" / VOTES
        until(lambda votes=votes: node not in state.read(votes)[1])  # type: ignore[misc]


def test_a_backup_is_killed_and_the_live_goes_on_alone_by_votes(cluster: Cluster) -> None:
    with_two_others(cluster)
    cluster["east2"].kill()
    cluster.says("east", "alone")
    cluster.publishes("east", b"one tea")
    assert "vote won" in cluster["east"].events()
    cluster["east2"].start()
    cluster.says("east2", "in sync")
    assert cluster["east2"].status.state == "passive"


def test_three_pairs_vote_for_each_other_and_successors_vote_on(cluster: Cluster) -> None:
    for name in ("east", "north", "west"):
        cluster.add_pair(name)
        cluster[name].start().becomes("live")
    for name in ("east", "north", "west"):
        cluster[f"{name}2"].start()
    for name in ("east", "north", "west"):
        cluster.says(f"{name}2", "in sync")
        cluster.says(name, "in sync")
    cluster.sees("east2", "north", "west")
    cluster.publishes("east", b"one coffee")
    cluster["east"].kill()
    cluster["east2"].becomes("live")
    assert cluster.bodies("east2") == [b"one coffee"]
    cluster.sees("north2", "east2", "west")
    cluster["north"].kill()
    cluster["north2"].becomes("live")
    cluster.sees("west", "east2", "north2")
    cluster["east"].start()
    cluster.says("east", "in sync")
    cluster.says("east2", "in sync")
    cluster["east2"].kill()  # its voters are a successor and one that has voted before
    cluster["east"].becomes("live")
    assert cluster["east"].status.epoch > 2
    assert cluster.bodies("east") == [b"one coffee"]
