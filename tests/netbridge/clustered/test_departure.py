"""To whom a node that leaves may give what it has, and what is said if there is nobody."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import shmbroker
from shmbroker.netbridge.cluster.scale_down import ScaleDown
from shmbroker.netbridge.clustered import departure
from shmbroker.netbridge.clustered.departure import Departure
from shmbroker.netbridge.clustered.setup import _group_name
from shmbroker.netbridge.clustered.towards import towards
from tests.netbridge.cluster.talk import node_of


def test_who_is_up_by_another_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connector here may have another name of a host than that one tells itself."""
    monkeypatch.setattr(departure, "FOUND_SECONDS", 0.0)
    members: Any = SimpleNamespace(reached=lambda: [(node_of("east"), "tcp://east:1")])
    wanted = ScaleDown(("tcp://10.0.0.1:1",), "", None, None)
    lines: list[Any] = []
    left = Departure(members, "town", wanted, lines.append, lambda *_: None).run(
        lambda uri: None, lambda *_: []
    )
    assert left.why == (
        "not scaled down: none of tcp://10.0.0.1:1 is up, and these are, by their own connectors: "
        "tcp://east:1"
    )
    members.reached = list
    left = Departure(members, "town", wanted, lines.append, lambda *_: None).run(
        lambda uri: None, lambda *_: []
    )
    assert left.why == "not scaled down: none of tcp://10.0.0.1:1 is up"


@pytest.mark.parametrize(
    ("by_scale_down", "by_replication", "group"),
    [("blue", "red", "blue"), ("", "red", "red"), (None, "red", "red"), ("", None, "")],
)
def test_a_broker_is_in_the_group_that_one_of_its_tables_says(
    by_scale_down: str | None, by_replication: str | None, group: str
) -> None:
    network: Any = SimpleNamespace(scale_down=None, replication=None)
    if by_scale_down is not None:
        network.scale_down = SimpleNamespace(group=by_scale_down)
    if by_replication is not None:
        network.replication = SimpleNamespace(group_name=by_replication)
    assert _group_name(network) == group


@pytest.mark.parametrize(
    "name", ["$sf.town.west", "$sf.town.AB", "$sf.town.00", towards("town.new", node_of("west"))]
)
def test_what_is_in_a_queue_that_only_looks_like_one_towards_a_node_is_not_waited_for(
    broker: shmbroker.Broker, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It leads to nobody.  That it is still here is told at the end, as of all that stays."""
    monkeypatch.setattr(departure, "LOST_SECONDS", 0.0)
    east = node_of("east")
    broker.declare_queue(towards("town", east))
    broker.declare_queue(name).publish(b"")
    messages = SimpleNamespace(
        standing=0, is_up=lambda node: node == east, goes_home=lambda node: False
    )
    members: Any = SimpleNamespace(messages=messages, name_of=lambda node: node.hex())
    wanted = ScaleDown((), "", None, None)
    leaves = Departure(members, "town", wanted, lambda line: None, lambda *_: None)
    leaves._drain(broker, [], east)
