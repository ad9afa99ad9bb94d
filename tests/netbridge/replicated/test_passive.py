"""Programs on other hosts that come to a member that is not live, or lose the one that was."""

from __future__ import annotations

import time
from typing import Any

import pytest

import shmbroker
from shmbroker import ConnectionClosed
from shmbroker.ipc.instance.config.config import FILE
from shmbroker.perf.machine.port import free_port
from tests.cli.command import eventually
from tests.netbridge.replicated.conftest import PASSWORD, PATIENCE, PATIENTLY, SHM, Made, Node
from tests.netbridge.replicated.test_reload import reloaded

BACK: dict[str, object] = {
    "ha.replication.check-for-live-server": True,
    "ha.allow-failback": False,
}
"""Who comes back becomes a backup."""


def address(node: Node, name: str) -> str:
    return f"tcp://{node.addresses[name]}:{node.ports[name]}"


def program(node: Node, *names: str, more: str = "") -> Any:
    """Its list has these members only."""
    members = ",".join(address(node, name) for name in names)
    uri = f"failover:({members})?{PATIENTLY}&{SHM}{more}"
    made = shmbroker.connect(uri, user="programs", password=PASSWORD)
    node.opened.callback(made.close)
    return made


def knows(program: Any, told: list[tuple[str, str]]) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = [(each.uri, each.standing) for each in program.topology()]
        if sorted(found) == sorted(told):
            return
        time.sleep(0.01)
    raise AssertionError(program.topology())


def test_a_backup_refuses_by_name_and_says_who_is_live(node: Made) -> None:
    two = node().up()
    came = program(two, "b")
    assert came.uri == address(two, "a")  # so b listens, and knows it
    said = f"passive: b is not active, and {address(two, 'a')} is live"
    with pytest.raises(ConnectionClosed, match=said):  # that one, and no other
        shmbroker.connect(f"{address(two, 'b')}?{SHM}", user="programs", password=PASSWORD)
    came.declare_queue("orders", durable=True).publish(b"found", timeout=PATIENCE)
    assert two.bodies("a") == [b"found"]


def test_a_program_goes_on_at_a_backup_that_its_list_does_not_have(node: Made) -> None:
    two = node(BACK).up()
    came = program(two, "a")
    queue = came.declare_queue("orders", durable=True)
    knows(came, [(address(two, "a"), "live"), (address(two, "b"), "backup")])
    queue.publish(b"before", timeout=PATIENCE)
    two["a"].kill()
    queue.publish(b"after", timeout=PATIENCE)
    assert came.uri == address(two, "b")
    assert two.bodies("b") == [b"before", b"after"]
    two["a"].start()
    two.says("a", "in sync")
    knows(came, [(address(two, "a"), "backup"), (address(two, "b"), "live")])


def test_another_address_of_a_member_is_told_at_once(node: Made) -> None:
    """To programs of the live; and to whoever comes to a backup, that of the live."""
    two = node().up()
    came = program(two, "a")
    knows(came, [(address(two, "a"), "live"), (address(two, "b"), "backup")])
    others = {name: f"tcp://127.0.0.2:{free_port()}" for name in ("b", "a")}
    for name, uri in others.items():
        text = (two[name].folder / FILE).read_text()
        answer = reloaded(two[name].folder, f'{text}\n[connectors.outside]\nuri = "{uri}"\n')
        assert answer["applied"] == ["connectors.outside.uri"]
    wanted = {(others["a"], "live"), (others["b"], "backup")}
    eventually(lambda: wanted <= {(each.uri, each.standing) for each in came.topology()})

    def is_told() -> bool:
        with pytest.raises(ConnectionClosed) as refused:
            shmbroker.connect(f"{address(two, 'b')}?{SHM}", user="programs", password=PASSWORD)
        return f"{others['a']} is live" in str(refused.value)

    eventually(is_told)


def test_a_program_goes_to_and_fro_with_hand_overs(node: Made) -> None:
    two = node().up()
    came = program(two, "b")
    queue = came.declare_queue("orders", durable=True)
    for live, other in (("a", "b"), ("b", "a")):
        knows(came, [(address(two, live), "live"), (address(two, other), "backup")])
        assert two.orders(live, {"verb": "handover"}) == ""
        queue.publish(b"on", timeout=PATIENCE)
        assert came.uri == address(two, other)
        two.says(live, "in sync")
    assert two.bodies("a") == [b"on", b"on"]


def test_a_member_that_knows_no_live_says_so(node: Made) -> None:
    two = node({"ha.replication.on-partition": "stop-confirming"}).up()
    two.are_killed("a", "b")
    two["b"].start()
    two.says("b", "held")
    with pytest.raises(ConnectionClosed, match="passive"):
        shmbroker.connect(f"{address(two, 'b')}?{SHM}", user="programs", password=PASSWORD)
