"""What a scrape says of queues that follow others."""

from __future__ import annotations

from shmbroker.cli.metrics.exposition import text
from tests.cli.command import Shell
from tests.cli.metrics.samples import Samples
from tests.netbridge.queue_replicated.conftest import NAME, Made


def test_a_queue_that_follows(two: Made) -> None:
    run = two()
    there, _ = run.up()
    there.declare_queue(NAME).publish(b"one")
    shell = Shell(run.vhosts["copy"])
    folder = str(run.copy.folder)
    shell.does("queue", "declare", "--broker", folder, "--start-replica", run.peer, NAME)
    run.waits("following")
    samples = Samples(text(run.copy.folder))
    assert samples.of("queue_replica_following", queue=NAME) == 1
    assert samples.of("queue_replica_lag_messages", queue=NAME) == 0
    assert samples.of("shown_age_seconds", part="replicas") < 60
    run.original.kill()
    run.waits("disconnected")
    assert Samples(text(run.copy.folder)).of("queue_replica_following", queue=NAME) == 0
