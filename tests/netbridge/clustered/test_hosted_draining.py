"""A backup that another live runs, and that gives to it all that its own live had."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import shmbroker
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.watch import Watch
from tests.netbridge.clustered.conftest import PATIENCE, Cluster
from tests.netbridge.clustered.test_colocated import (
    add_one,
    add_replicated,
    backups_end,
    becomes,
    child,
    in_sync,
    is_hosted,
    shows,
    started,
    story,
    witness,
)
from tests.netbridge.clustered.test_draining import HOPS
from tests.netbridge.clustered.test_scale_down import numbers
from tests.support.log_lines import log_lines
from tests.support.witness import Place

__all__ = ["backups_end", "witness"]


def logs(cluster: Cluster, folder: Path, state: str) -> None:
    """Waits until the broker of this folder has said so of its cluster."""
    watch, late = Watch(folder / "log"), time.monotonic() + PATIENCE
    try:
        while not any(
            each.get("state") == state for each in log_lines(folder / "log" / "shmbroker.log")
        ):
            assert time.monotonic() < late, story(cluster)
            watch.wait(late - time.monotonic())
    finally:
        watch.close()


def test_what_a_killed_live_had_is_at_who_runs_its_backup_which_waits(cluster: Cluster) -> None:
    for name in ("east", "west"):
        add_one(
            cluster, name, ("east", "west"), asks=["west"], **HOPS,
            ha__colocated__backup={"scale-down": {"connectors": [name]}},
        )  # fmt: skip
    started(cluster, "east", "west")
    shows(cluster, "west", is_hosted)
    hosted = child(cluster, "east")
    becomes(cluster, hosted, "passive")
    with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as west:
        orders = west.declare_queue("orders", durable=True, slots=1024)
        for body in numbers(0, 300):
            orders.publish(body, confirm="shm")
        orders.publish(b"last")
    cluster["west"].kill()
    logs(cluster, hosted, "scaled down")
    becomes(cluster, hosted, "passive")
    with shmbroker.connect(f"shm://{cluster.vhosts['east']}", name="test") as east:
        found = [bytes(each.body) for each in east.queue("orders").browse()]
    assert found == [*numbers(0, 300), b"last"]
    said = log_lines(hosted / "log" / "shmbroker.log")
    assert "live" not in {each["event"] for each in said}, "nobody was let in"

    cluster["west"].start().becomes("live")
    with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as west:
        assert "orders" not in {each.name for each in west.queues()}
    shows(cluster, "west", is_hosted)


@pytest.mark.skipif("SHMBROKER_LONG" not in os.environ, reason="`make crash` has it")
def test_a_copy_that_drains_waits_for_its_live_and_ends(cluster: Cluster, witness: Place) -> None:
    drains = {"scale-down": {"connectors": ["east", "west"]}}
    add_replicated(cluster, witness, "east", "west", **HOPS, ha__colocated__backup=drains)
    started(cluster, "east", "west")
    hosted = in_sync(cluster, "west")
    with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as west:
        west.declare_queue("orders", durable=True).publish(b"one coffee")
    cluster["west"].kill()
    watch, late = Watch(hosted / status.RUN), time.monotonic() + PATIENCE
    try:
        while not status.read(hosted).replication.startswith("drained"):
            assert time.monotonic() < late, story(cluster)
            watch.wait(late - time.monotonic())
    finally:
        watch.close()
    assert cluster.bodies("east") == [b"one coffee"]
    cluster["west"].start().becomes("live")
    with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as west:
        assert "orders" not in {each.name for each in west.queues()}
    assert in_sync(cluster, "west") == hosted, "it was asked for anew"
