"""A live and two backups in sync on one host, and nobody to ask: who goes on is agreed by them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shmbroker.ipc.instance import status
from tests.cli.command import eventually
from tests.netbridge.replicated.conftest import PATIENCE, Node, nodes

NAMES = ("a", "b", "c")
SETTINGS = {
    "ha.replication.on-partition": "stop-confirming",
    "ha.replication.max-replicas": 2,
    "ha.replication.check-for-live-server": True,
    "ha.replication.check-for-live-wait": "500ms",
    "ha.allow-failback": False,
}


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Node]:
    with nodes(tmp_path, dict.fromkeys(NAMES, "127.0.0.1")) as made:
        node = made(SETTINGS)
        node["a"].start().becomes("live")
        for name in NAMES[1:]:
            node[name].start()
            node.says(name, "in sync")
        yield node


def lives(node: Node) -> list[str]:
    return [name for name in NAMES if status.read(node[name].folder).state == "live"]


def live_of(node: Node) -> str:
    """It may have confirmed before it has shown that it is live."""
    [live] = eventually(lambda: lives(node))
    return str(live)


def test_the_role_goes_on_as_each_live_is_killed(three: Node) -> None:
    orders = three.program().declare_queue("orders", durable=True)
    sent: list[bytes] = []
    for turn in range(6):
        live = live_of(three)
        three[live].kill()
        sent.append(b"%d" % turn)
        orders.publish(sent[-1], timeout=PATIENCE)
        three[live].start()
        now = live_of(three)
        assert now != live
        for name in set(NAMES) - {now}:
            three.says(name, "in sync")
        three.logs(now, "took over")
        assert three[now].status.epoch == turn + 2
        assert three.bodies(now) == sent


def test_a_backup_that_stands_still_is_waited_for(three: Node) -> None:
    """It might have begun the next epoch."""
    three.stands_still("c")
    three["a"].kill()
    three.says("b", "held: waits for c")
    three.goes_on("c")
    three["b"].becomes("live")
    three.says("c", "in sync")


def test_without_one_of_two_backups_nobody_goes_on(three: Node) -> None:
    three.are_killed("c", "a")
    three.says("b", "held: waits for c")
    three["c"].start()
    three["b"].becomes("live")
    three.says("c", "in sync")
