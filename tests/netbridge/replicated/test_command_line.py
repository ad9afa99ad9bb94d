"""`shmbroker ha`, `status`, `stop --no-handover` and `check standby` of a pair."""

from __future__ import annotations

import pytest

from tests.cli.command import Answer, Shell
from tests.netbridge.replicated.conftest import Made, Node
from tests.netbridge.replicated.test_losing import MANY, filled


class Commands:
    def __init__(self, node: Node) -> None:
        self.node = node
        self._shell = Shell(node.vhosts["a"])

    def __call__(self, name: str, *words: str) -> Answer:
        """A word is the folder of that member."""
        folder = str(self.node[name].folder)
        return self._shell(*(folder if word == "DIR" else word for word in words))


@pytest.fixture
def pair(node: Made) -> Commands:
    return Commands(node().up())


def test_what_a_pair_shows(pair: Commands) -> None:
    assert pair("a", "status", "DIR", "--json").json["replication"] == "in sync"
    told = pair("a", "ha", "status", "DIR", "--json").json
    assert (told["member"], told["state"], told["epoch"]) == ("a", "live", 1)
    assert told["level"] == "disk+replicated"
    assert told["in-sync"] == ["a", "b"]
    [replica] = told["replicas"]
    assert (replica["member"], replica["in-sync"], replica["state"]) == ("b", True, "in sync")
    assert replica["lag-bytes"] == 0
    assert "in sync" in pair("a", "ha", "status", "DIR").out
    rows = pair("b", "ha", "status", "DIR", "--all", "--json").json
    known = [(row["member"], row["linked"], row["state"], row["in-sync"]) for row in rows]
    assert known == [("a", True, "live", True), ("b", True, "in sync", True)]
    assert {row["epoch"] for row in rows} == {1}
    assert "LAST FRAME" in pair("b", "ha", "status", "DIR", "--all").out
    assert pair("a", "ha", "status", "DIR", "--is-primary").code == 0
    assert pair("b", "ha", "status", "DIR", "--is-primary").code == 1
    assert pair("b", "ha", "status", "DIR", "--expect", "in sync").code == 0
    assert pair("b", "ha", "status", "DIR", "--expect", "held").code == 1
    assert "in sync" in pair("b", "ha", "status", "DIR").out
    assert pair("b", "check", "standby", "DIR").code == 0
    assert pair("a", "ha", "ping", "DIR").code == 0


def test_a_handover_and_what_is_refused(pair: Commands) -> None:
    filled(pair.node)
    refused = pair("b", "ha", "handover", "DIR")
    assert (refused.code, "has nothing to hand over" in refused.said) == (1, True)
    assert pair("a", "ha", "handover", "DIR", "b").code == 0
    pair.node["b"].becomes("live")
    pair.node.says("a", "in sync")
    assert pair.node.bodies("b") == MANY
    for verb in ("continue", "yield"):
        assert pair("b", "ha", verb, "DIR").code == 2, "it wants --yes"
        assert pair("b", "ha", verb, "DIR", "--yes").code == 1
    assert pair("a", "ha", "activate", "DIR", "--force").code == 2, "it wants --yes"


def test_a_stop_without_a_handover(pair: Commands) -> None:
    assert pair("a", "stop", "DIR", "--no-handover", "--timeout", "30s").code == 0
    pair.node.says("b", "parked")
    (row, _) = pair("b", "ha", "status", "DIR", "--all", "--json").json
    assert (row["member"], row["linked"], row["state"]) == ("a", False, "not reached")
    standby = pair("b", "check", "standby", "DIR")
    assert (standby.code, "it is parked" in standby.out) == (2, True)
    assert pair("a", "check", "standby", "DIR").code == 2
    assert pair("b", "ha", "activate", "DIR").code == 0
    pair.node["b"].becomes("live")


def test_promote_asks_the_live_to_hand_over(pair: Commands) -> None:
    filled(pair.node)
    promoted = pair("b", "ha", "promote", "-b", "DIR")
    assert promoted.code == 0, promoted
    assert promoted.said.splitlines() == [
        "it waits until it is granted to be live", "it is live",
    ]  # fmt: skip
    assert pair.node.bodies("b") == MANY
    pair.node.says("a", "in sync")
    serves = pair("b", "ha", "promote", "DIR")
    assert (serves.code, "b is live, and cannot be activated" in serves.said) == (1, True)
    assert pair("b", "ha", "promote").code == 2


def test_promote_says_that_the_live_does_not_hand_over(node: Made) -> None:
    members = node(a={"ha.allow-failback": False}).up()
    refused = Commands(members)("b", "ha", "promote", "DIR", "--timeout", "1s")
    assert refused.code == 1
    assert "it is in sync, not live: its log, and that of the live, say why" in refused.said
    assert "failback refused" in str(members["b"].said())
    assert members["a"].becomes("live")
