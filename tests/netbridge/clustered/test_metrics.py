"""What a scrape says of a cluster."""

from __future__ import annotations

import pytest

from shmbroker import GroupingTimeout
from shmbroker.cli.metrics.exposition import text
from shmbroker.netbridge.broker.programs import of_folder
from tests.cli.metrics.samples import Samples
from tests.netbridge.clustered.conftest import Cluster
from tests.netbridge.clustered.test_grouping import IN_TIME, declared, grouping, has_handler
from tests.netbridge.clustered.test_programs import add, connected
from tests.netbridge.clustered.test_redistribution import at
from tests.support.programs import is_shown_and_disconnected
from tests.support.until import until


def nodes(found: Samples) -> dict[str, float]:
    """Which nodes are up, by their names."""
    return {
        each.labels["node"].partition("/")[0]: each.value
        for each in found.found
        if each.name == "shmbroker_cluster_node_up"
    }


def test_nodes_that_are_up_and_missing(cluster: Cluster) -> None:
    for name in ("east", "west"):
        cluster.add(name).start()
    for name in ("east", "west"):
        cluster.sees(name, *({"east", "west"} - {name}))
    samples = Samples(text(cluster["east"].folder))
    assert nodes(samples) == {"east": 1, "west": 1}
    assert samples.of("cluster_lives") == 2
    assert samples.of("cluster_duplicates") == 0
    assert samples.all("cluster_node_backups") == [0, 0]
    cluster["west"].kill()
    cluster.sees("east", missing=("west",))
    missing = Samples(text(cluster["east"].folder))
    assert nodes(missing) == {"east": 1, "west": 0}
    assert missing.of("cluster_can_vote") == 0


def test_groups_and_programs_on_other_hosts(cluster: Cluster) -> None:
    """Of groups both brokers tell: the one that decides and the one that asks."""
    given = {name: grouping(name == "east", **IN_TIME) for name in ("east", "west")}
    uri = add(cluster, "east", **given["east"])
    cluster.add("west", **given["west"])
    for name in ("east", "west"):
        cluster[name].start()
    for name in ("east", "west"):
        cluster.sees(name, *({"east", "west"} - {name}))
        with at(cluster, name) as broker:
            until(lambda broker=broker: has_handler(broker))  # type: ignore[misc]
    with at(cluster, "east") as east, at(cluster, "west") as west:
        declared(cluster, east=east, west=west)
        for group in ("anna", "berta", "carla"):
            west.queue("orders").publish(b"x", group=group)
    for name, state in (("east", "decides"), ("west", "asks")):
        until(lambda name=name: scraped(cluster, name).all("groups") == [3])  # type: ignore[misc]
        assert scraped(cluster, name).state("grouping_state") == state
    west_says = scraped(cluster, "west")
    assert west_says.of("group_proposals_total") >= 3
    for metric in ("groups_unreached", "groups_waiting", "group_timeouts_total"):
        assert west_says.of(metric) == 0, metric
    assert not west_says.all("sessions"), "it has no acceptor for programs"
    with connected(uri) as program:
        until(lambda: sessions(cluster) == {"linked": 1, "waiting": 0})
        program.declare_queue("q")
        [row] = of_folder(cluster["east"].folder)
        with at(cluster, "east") as east:
            is_shown_and_disconnected(cluster["east"].folder, east.vhost, row["name"])
        program.queue("q").publish(b"it comes again", timeout=60)
    until(lambda: sessions(cluster) == {"linked": 0, "waiting": 0})
    cluster["east"].kill()
    cluster.sees("west", missing=("east",))
    with at(cluster, "west") as west, pytest.raises(GroupingTimeout):
        west.queue("orders").publish(b"x", group="doris")
    until(lambda: scraped(cluster, "west").of("group_timeouts_total") == 1)
    alone = scraped(cluster, "west")
    assert alone.state("grouping_state") == "not reached"
    assert alone.of("groups_unreached") > 0


def scraped(cluster: Cluster, name: str) -> Samples:
    """What it has said last, if it is too busy to say it anew."""
    return Samples(text(cluster[name].folder))


def sessions(cluster: Cluster) -> dict[str, float]:
    found = scraped(cluster, "east").found
    return {each.labels["state"]: each.value for each in found if each.name == "shmbroker_sessions"}
