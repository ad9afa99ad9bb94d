"""What a scrape, and `check ready`, say of the members of a replicated node."""

from __future__ import annotations

from shmbroker.cli.metrics.exposition import text
from tests.cli.command import Shell
from tests.cli.metrics.samples import Samples
from tests.netbridge.replicated.conftest import Made, Node


def shows(pair: Node) -> None:
    """`a` has written all that it shows: a scrape asks, too, but waits for a moment only."""
    assert pair.orders("a", {"verb": "show"}) == ""


def test_a_live_and_its_replica(node: Made) -> None:
    pair = node().up()
    shows(pair)
    samples = Samples(text(pair["a"].folder))
    assert samples.state("broker_role", "policy") == "replication"
    assert samples.state("replication_state") == "in sync"
    assert samples.state("durability_level", "level") == "disk+replicated"
    assert samples.of("in_sync_members") == 2
    assert samples.of("replica_in_sync", member="b") == 1
    assert samples.of("replica_lag_bytes", member="b") == 0
    assert samples.of("replica_lag_seconds", member="b") < 60
    assert samples.of("shown_age_seconds", part="ha") < 60
    assert samples.of("vhost_up") == 1
    backup = Samples(text(pair["b"].folder))
    assert backup.state("broker_state") == "passive"
    assert backup.state("replication_state") == "in sync"
    assert not backup.all("queue_depth")

    pair.stands_still("a")
    try:
        stopped = Samples(text(pair["a"].folder))
        assert stopped.of("stopped") == stopped.of("up") == 1
        assert stopped.of("replica_in_sync", member="b") == 1
    finally:
        pair.goes_on("a")


def test_a_live_that_has_lost_its_replica(node: Made) -> None:
    pair = node().up()
    pair["b"].stop()
    pair.says("a", "alone")
    shows(pair)
    samples = Samples(text(pair["a"].folder))
    assert samples.state("replication_state") == "alone"
    assert samples.state("durability_level", "level") == "disk"
    assert samples.of("in_sync_members") == 1
    ready = Shell(pair.vhosts["a"])("check", "ready", str(pair["a"].folder))
    assert (ready.code, "no replica is in sync" in ready.out) == (1, True)
    pair["a"].kill()
    assert Samples(text(pair["a"].folder)).all("replication_state", state="alone") == [0]
