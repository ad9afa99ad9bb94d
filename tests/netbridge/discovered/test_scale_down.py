"""A broker that is stopped gives what it has to one that it has discovered."""

from __future__ import annotations

import shmbroker
from tests.cli.command import Shell
from tests.netbridge.discovered.conftest import Lan

HOPS = {"cluster__town__max_hops": 1}


def test_any_node_of_the_cluster_that_is_there_gets_it(lan: Lan) -> None:
    cluster = lan.cluster
    lan.add("east", lan.registry, **HOPS)
    leaves = {"ha__policy": "live-only", "ha__scale_down__discovery_group": "lan"}
    lan.add("west", lan.registry, **HOPS, **leaves)
    for name in ("east", "west"):
        cluster[name].start().becomes("live")
    cluster.sees("west", "east")
    with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as west:
        west.declare_queue("orders", durable=True).publish(b"one coffee")
    done = Shell(cluster.vhosts["west"])("stop", str(cluster["west"].folder))
    assert (done.code, cluster["west"].ends()) == (0, 0), cluster.story()
    assert "1 of 1 messages to east" in done.said
    assert cluster.bodies("east") == [b"one coffee"]
