"""A backup of a replicated node that does not serve, but gives what it has to another node, and
stays its live, closed, until its original is back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Moved
from shmbroker.perf.machine.port import free_port
from tests.netbridge.clustered.conftest import PASSWORD, Cluster
from tests.netbridge.clustered.test_draining import HOPS, logs, until_shown
from tests.netbridge.clustered.test_scale_down import numbers, taken
from tests.support.witness import Place


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "witness")
    made.begin()
    yield made
    made.kill()


def add_members(cluster: Cluster, witness: Place, name: str, **of_backup: object) -> None:
    """A replicated node: `name`, and its backup with a 2 behind it."""
    names = (name, f"{name}2")
    addresses = {each: f"tcp://127.0.0.1:{free_port()}" for each in names}
    voters = {key.replace(".", "__"): each for key, each in witness.settings.items()}
    for each in names:
        given: dict[str, object] = {
            "store__path": "data",
            "ha__policy": "replication",
            "ha__members": [f"{member}={uri}" for member, uri in addresses.items()],
            "ha__replication__check-for-live-server": True,
            "ha__replication__retry-replication-wait": "100ms",
            "ha__replication__lease": "3s",
            "acceptors__members__uri": addresses[each],
            "acceptors__members__roles": ["replica"],
            "credentials__members__password": PASSWORD,
            "credentials__members__role": "replica",
            **voters,
            **HOPS,
            **({} if each == name else of_backup),
        }
        cluster.add(each, "live" if each == name else "backup", **given)


def drains_to(cluster: Cluster, witness: Place, *names: str) -> None:
    """`west`, whose backup gives all to `east`; these nodes have a backup, and all are there."""
    for name in ("east", "west"):
        of_backup = {"ha__scale_down__connectors": ["east"]} if name == "west" else {}
        if name in names:
            add_members(cluster, witness, name, **of_backup)
        else:
            cluster.add(name, **HOPS)
    for name in ("east", "west"):
        cluster[name].start().becomes("live")
        if name in names:
            cluster[f"{name}2"].start()
            cluster.says(f"{name}2", "in sync")
            cluster.says(name, "in sync")
    cluster.sees("west", "east")
    cluster.sees("west2", "east")


def test_what_a_killed_live_had_is_at_another_node_and_it_begins_with_nothing(
    cluster: Cluster, witness: Place
) -> None:
    drains_to(cluster, witness, "east", "west")
    with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as west:
        orders = west.declare_queue("orders", durable=True, slots=1024, max_deliveries=7)
        for body in numbers(0, 300):
            orders.publish(body, confirm="shm")
        orders.publish(b"last")
        orders.publish(b"later", deliver_after=3600.0)
    cluster["west"].kill()
    cluster.says("west2", "drained, waits for west")
    assert cluster["west2"].status.state == "passive"
    assert "live" not in cluster["west2"].events(), "nobody was let in"
    with pytest.raises(Moved):
        shmbroker.connect(f"shm://{cluster.vhosts['west2']}", name="late").declare_queue("late")
    moved = [*numbers(0, 300), b"last"]
    with shmbroker.connect(f"shm://{cluster.vhosts['east']}", name="test") as east:
        found = east.queue("orders")
        assert [bytes(each.body) for each in found.browse()] == moved
        assert [each.body for each in found.scheduled()] == [b"later"]
        assert found.explain()["max_deliveries"].value == 7

    cluster["west"].start().becomes("live")
    with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as west:
        assert "orders" not in {each.name for each in west.queues()}
        west.declare_queue("orders", durable=True).publish(b"anew")
    cluster.says("west2", "in sync")
    assert cluster["west"].status.epoch == 4, cluster.story()
    cluster["west"].kill()  # it is the backup of this time as well
    cluster.says("west2", "drained, waits for west")
    assert cluster.bodies("east") == [*moved, b"anew"]
    cluster["east"].kill()  # its own backup has it, too
    cluster["east2"].becomes("live")
    assert cluster.bodies("east2") == [*moved, b"anew"]
    assert cluster["west2"].stop() == 0


def test_a_live_with_old_messages_waits_for_whoever_gave_them_away(
    cluster: Cluster, witness: Place
) -> None:
    drains_to(cluster, witness, "west")
    cluster.publishes("west", b"one coffee")
    cluster["west"].kill()
    cluster.says("west2", "drained, waits for west")
    cluster["west2"].kill()
    cluster["west"].start()
    cluster.says("west", "held")
    cluster["west2"].start()
    cluster["west"].becomes("live")
    with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as west:
        assert "orders" not in {each.name for each in west.queues()}
    assert cluster.bodies("east") == [b"one coffee"]
    assert len(cluster.logged("west2", "scaled down")) == 1, "it knew that all is there"


@pytest.mark.skipif("SHMBROKER_LONG" not in os.environ, reason="`make crash` has it")
def test_killed_while_it_gives_all_away_it_gives_the_rest(cluster: Cluster, witness: Place) -> None:
    drains_to(cluster, witness, "west")
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
        cluster["west2"].start()
        found = taken(small, 300)
        cluster.says("west2", "drained, waits for west")
        assert small.statistics().depth == 0
    assert found == numbers(0, 300)


@pytest.mark.skipif("SHMBROKER_LONG" not in os.environ, reason="`make crash` has it")
def test_what_nobody_takes_is_there_when_the_live_is_back(cluster: Cluster, witness: Place) -> None:
    drains_to(cluster, witness, "west")
    cluster.publishes("west", b"one coffee")
    cluster["east"].kill()
    cluster.sees("west2", missing=("east",))
    cluster["west"].kill()
    logs(cluster, "west2", "cluster", "not scaled down")
    cluster["west"].start().becomes("live")
    assert cluster.bodies("west") == [b"one coffee"]
    cluster.says("west2", "in sync")
