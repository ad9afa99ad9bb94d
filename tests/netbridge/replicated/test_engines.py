"""Members that let different engines grant epochs.  Nobody runs them: a first epoch needs none."""

from __future__ import annotations

import pytest

from shmbroker.perf.machine.port import free_port
from tests.netbridge.replicated.conftest import PASSWORD, Made

pytest.importorskip("kazoo")


def zookeeper(namespace: str) -> dict[str, object]:
    """By a server of its own, as a member on the host of one of them may have it."""
    return {
        "ha.replication.on-partition": None,
        "ha.replication.lock-manager": "zookeeper",
        "ha.zookeeper.connect": f"127.0.0.1:{free_port()}",
        "ha.zookeeper.namespace": namespace,
    }


def test_members_of_two_namespaces_refuse_each_other(node: Made) -> None:
    two = node(a=zookeeper("/one"), b=zookeeper("/two"))
    two["a"].start().becomes("live")
    two["b"].start()
    two.says("b", "refused")
    assert two["b"].status.why == (
        "a: a lets ZooKeeper, namespace /one grant epochs, and this member ZooKeeper, "
        "namespace /two"
    )
    assert two["a"].status.replication == "alone"


def test_a_member_with_an_engine_and_one_with_witnesses_refuse_each_other(node: Made) -> None:
    witnesses = {
        "ha.replication.on-partition": None,
        "ha.replication.witnesses": [f"tcp://127.0.0.1:{free_port()}"],
        "credentials.votes.password": PASSWORD,
        "credentials.votes.role": "witness",
    }
    two = node(a=zookeeper("/one"), b=witnesses)
    two["a"].start().becomes("live")
    two["b"].start()
    two.says("b", "refused")
    why = "a: a lets ZooKeeper, namespace /one grant epochs, and this member witnesses"
    assert two["b"].status.why == why


def test_a_first_start_founds_no_node_beside_one_of_another_namespace(node: Made) -> None:
    """Its disk was replaced, and its file written anew: the other member has the node."""
    two = node(a=zookeeper("/one"), b=zookeeper("/two"))
    two["b"].start()
    two.says("b", "joining")
    two["a"].start()
    two.says("a", "refused: b: b lets ZooKeeper, namespace /two grant epochs")


def test_the_servers_of_an_engine_may_be_reached_by_other_names(node: Made) -> None:
    two = node(a=zookeeper("/one"), b=zookeeper("/one"))
    two["a"].start().becomes("live")
    two["b"].start()
    two.says("b", "syncing")
