"""What waits for a node that is not there, groups that lead there, and lives without a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shmbroker import Broker
from shmbroker.ipc.queue.grouped import ROUTES, SEPARATOR
from shmbroker.netbridge.clustered.stuck import findings

HERE, WEST, GONE = "aa" * 16, "bb" * 16, "cc" * 16


def told(state: str, **of_west: object) -> dict[str, Any]:
    """As `cluster list` has it: this node, and west."""
    row = {"hops": 1, "epoch": 1, "version": "0", "group": [], "backups": {}}
    return {"cluster": "town", "nodes": [
        {**row, "node": HERE, "name": "east", "address": "tcp://east", "state": "here"},
        {**row, "node": WEST, "name": "west", "address": "tcp://west", "state": state, **of_west},
    ]}  # fmt: skip


def problems(broker: Broker, of: dict[str, Any]) -> dict[str, str]:
    return {each.subject.split("'")[1]: each.problem for each in findings(broker, Path("d"), of)}


def test_what_waits_for_a_node(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    for node in (WEST, GONE):
        broker.declare_queue(f"$sf.town.{node}").publish(b"")
    forgotten = f"$sf.town.{GONE}"
    found = problems(broker, told("missing"))
    assert found.keys() == {"west", forgotten}
    assert found["west"].startswith("it is missing; 1 message waits, it for ")
    assert found[forgotten].startswith("it is forgotten; 1 message waits")
    assert problems(broker, told("up")).keys() == {forgotten}
    monkeypatch.setattr("shmbroker.netbridge.clustered.stuck.LONG_SECONDS", 0.0)
    assert problems(broker, told("up"))["west"].startswith("it is up; 1 message waits")
    broker.queue(f"$sf.town.{WEST}").get(timeout=0).ack()
    assert problems(broker, told("missing")).keys() == {forgotten}
    for other in ({}, told("up") | {"cluster": "city"}):
        left = problems(broker, other)
        assert left.keys() == {forgotten}
        assert "is in no cluster 'town' any more; 1 message waits" in left[forgotten]


def test_a_queue_that_only_looks_like_one_towards_a_node_leads_to_none(broker: Broker) -> None:
    for name in ("mine", WEST.upper(), WEST + "bb"):
        broker.declare_queue(f"$sf.town.{name}").publish(b"")
    assert problems(broker, told("missing")) == {}


def test_groups_whose_node_is_gone(broker: Broker) -> None:
    routes = broker.declare_queue(ROUTES, last_value=True)
    for group, node in (("anna", WEST), ("ben", GONE), ("carl", HERE)):
        routes.publish(f"$sf.town.{node}".encode(), key=f"orders{SEPARATOR}{group}")
    found = problems(broker, told("missing"))
    assert "anna of orders" in found["west"]
    assert "ben of orders" in found[GONE]
    assert not any("carl" in each for each in found.values())
    assert problems(broker, told("up")).keys() == {GONE}


def test_lives_without_a_backup(broker: Broker) -> None:
    group = ["a", "b"]
    assert "no backup" in problems(broker, told("up", group=group))["west"]
    assert problems(broker, told("missing", group=group)) == {}
    assert problems(broker, told("up", group=group, backups={"b": "tcp://b"})) == {}
