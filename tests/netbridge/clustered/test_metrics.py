"""What a scrape says of a cluster."""

from __future__ import annotations

from shmbroker.cli.metrics.exposition import text
from tests.cli.metrics.samples import Samples
from tests.netbridge.clustered.conftest import Cluster


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
