"""A backup that does not go on with what its live had, but gives it to another node, and waits."""

from __future__ import annotations

import os
import time

import pytest

import shmbroker
from shmbroker import Moved
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.watch import Watch
from shmbroker.ipc.instance.whole import read_whole
from tests.netbridge.clustered.conftest import PATIENCE, Cluster
from tests.netbridge.clustered.test_scale_down import bodies, numbers

HOPS = {"cluster__town__max_hops": 1, "cluster__town__message_load_balancing": "off"}
DRAINS = {**HOPS, "ha__scale_down__connectors": ["east"]}


def started(cluster: Cluster, *, with_east: bool = True) -> None:
    """`west`, whose backup drains into `east`."""
    cluster.add("east", **HOPS)
    cluster.add("west", **HOPS).start().becomes("live")
    cluster.add("west2", "backup", shares="west", **DRAINS).start().becomes("passive")
    if with_east:
        cluster["east"].start().becomes("live")
        cluster.sees("west", "east")
        cluster.sees("west2", "east")


def until_shown(cluster: Cluster, name: str, messages: int) -> None:
    """So many are at the other node."""
    folder = cluster[name].folder / status.RUN
    watch, late = Watch(folder), time.monotonic() + PATIENCE
    try:
        while read_whole(folder / "scale-down").get("messages", 0) < messages:
            assert time.monotonic() < late, cluster.story()
            watch.wait(late - time.monotonic())
    finally:
        watch.close()


def logs(cluster: Cluster, name: str, event: str, state: str = "") -> None:
    """Waits until it has said so."""
    watch, late = Watch(cluster[name].folder / "log"), time.monotonic() + PATIENCE
    try:
        while not any(
            each["event"] == event and state in ("", each.get("state"))
            for each in cluster[name].said()
        ):
            assert time.monotonic() < late, cluster.story()
            watch.wait(late - time.monotonic())
    finally:
        watch.close()


def test_what_a_killed_live_had_is_at_another_node_and_its_backup_waits(cluster: Cluster) -> None:
    started(cluster)
    with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as west:
        orders = west.declare_queue("orders", durable=True, slots=2048, max_deliveries=7)
        for body in numbers(0, 500):
            orders.publish(body, confirm="shm")
        orders.publish(b"last")
        orders.publish(b"later", deliver_after=3600.0)
        cluster["west"].kill()
        logs(cluster, "west2", "cluster", "scaled down")
        cluster["west2"].becomes("passive")
        with pytest.raises(Moved):
            orders.publish(b"late")
    with shmbroker.connect(f"shm://{cluster.vhosts['east']}", name="test") as east:
        found = east.queue("orders")
        assert bodies(found) == [*numbers(0, 500), b"last"]
        assert [each.body for each in found.scheduled()] == [b"later"]
        assert found.explain()["max_deliveries"].value == 7
    assert "live" not in cluster["west2"].events(), "nobody was let in"

    cluster["west"].start().becomes("live")
    with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as west:
        assert "orders" not in {each.name for each in west.queues()}
        west.declare_queue("orders", durable=True).publish(b"anew")
    cluster.sees("west2", "east")
    cluster["west"].kill()  # it is the backup of this time as well
    late = time.monotonic() + PATIENCE
    while cluster.bodies("east")[-1] != b"anew":
        assert time.monotonic() < late, cluster.story()
        time.sleep(0.05)  # nothing tells
    cluster["west2"].becomes("passive")
    assert cluster["west2"].stop() == 0


@pytest.mark.skipif("SHMBROKER_LONG" not in os.environ, reason="`make crash` has it")
def test_a_live_that_comes_back_has_what_could_not_be_moved(cluster: Cluster) -> None:
    started(cluster, with_east=False)
    with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as west:
        west.declare_queue("orders", durable=True).publish(b"one coffee")
    cluster["west"].kill()
    cluster["west2"].becomes("handing over")
    cluster["west"].start().becomes("live")
    assert cluster.bodies("west") == [b"one coffee"]
    logs(cluster, "west2", "not scaled down")
    cluster["west2"].becomes("passive")


def test_a_live_whose_backup_was_killed_while_it_drained_serves_the_rest(cluster: Cluster) -> None:
    started(cluster)
    with shmbroker.connect(f"shm://{cluster.vhosts['east']}", name="test") as east:
        small = east.declare_queue("orders", durable=True, slots=64)
        with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as west:
            orders = west.declare_queue("orders", durable=True, slots=1024)
            for body in numbers(0, 300):
                orders.publish(body, confirm="shm")
            orders.confirm()
        cluster["west"].kill()
        until_shown(cluster, "west2", 64)
        cluster["west2"].kill()
        cluster["west"].start().becomes("live")
        found = bodies(small)
    with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as west:
        west.queue("orders").publish(b"300")  # it is not out of reach
        names = [each.name for each in west.queues() if each.name.startswith(("$sf.", "orders"))]
        found += [body for name in names for body in bodies(west.queue(name))]
    assert sorted(map(int, found)) == list(range(301))
