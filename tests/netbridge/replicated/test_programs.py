"""Programs in shared memory of a live that is live no more."""

from __future__ import annotations

import threading

import pytest

import shmbroker
from shmbroker import ConnectionClosed, Unconfirmed
from shmbroker.netbridge.broker.programs import of_folder
from tests.cli.command import eventually
from tests.netbridge.replicated.conftest import PATIENCE, Made
from tests.netbridge.replicated.test_losing import MANY, filled
from tests.support.programs import is_shown_and_disconnected
from tests.support.trace import TRACE


def test_they_are_told_that_it_moved(node: Made) -> None:
    two = node().up()
    orders = filled(two)
    empty = two.connected("a").declare_queue("empty", durable=True)
    errors: list[BaseException] = []

    def waits() -> None:
        try:
            empty.get(timeout=PATIENCE)
        except ConnectionClosed as error:
            errors.append(error)

    waiting = threading.Thread(target=waits)
    waiting.start()
    assert two.orders("a", {"verb": "handover"}) == ""
    two["b"].becomes("live")
    two.says("a", "in sync")
    waiting.join(PATIENCE)
    assert "has moved" in str(errors)
    for call in (lambda: orders.publish(b"too late"), orders.get_nowait):
        with pytest.raises(ConnectionClosed, match="has moved"):
            call()
    assert two.bodies("b") == MANY


def test_a_publish_that_waits_ends_unconfirmed(node: Made) -> None:
    two = node({"ha.replication.on-partition": "stop-confirming"}, b={}).up()
    orders = filled(two)
    two.stands_still("b")
    two.says("a", "suspended")
    before = orders.published
    ended: list[type[BaseException]] = []

    def waits() -> None:
        try:
            orders.publish(b"nobody has it", timeout=PATIENCE)
        except (Unconfirmed, ConnectionClosed) as error:
            ended.append(type(error))

    waiting = threading.Thread(target=waits)
    waiting.start()
    eventually(lambda: orders.published > before)
    two["a"].stop()
    waiting.join(PATIENCE)
    assert ended == [Unconfirmed]
    two.goes_on("b")


def test_a_connection_made_anew_finds_the_live(node: Made) -> None:
    two = node().up()
    filled(two)
    for live, other in (("a", "b"), ("b", "a")):
        assert two.orders(live, {"verb": "handover"}) == ""
        two[other].becomes("live")
        two.says(live, "in sync")
        with pytest.raises(shmbroker.NotFound):
            shmbroker.connect(f"shm://{two.vhosts[live]}")
        with shmbroker.connect(f"shm://{two.vhosts[other]}") as program:
            program.queue("orders").publish(b"on", timeout=PATIENCE)
    assert two.bodies("a") == [*MANY, b"on", b"on"]


def test_the_live_shows_and_disconnects_those_on_other_hosts(node: Made) -> None:
    two = node().up()
    folders = {name: two[name].folder for name in ("a", "b")}
    stays, leaves = two.program(), two.program("&failover-mode=application")
    for number, each in enumerate((stays, leaves)):
        each.declare_queue(f"q{number}").publish(b"x", timeout=PATIENCE)
    assert of_folder(folders["b"]) == [], "it is passive"
    assert len(of_folder(folders["a"])) == 2
    name = of_folder(folders["a"])[1]["name"]
    stays.close()
    eventually(lambda: len(of_folder(folders["a"])) == 1)
    is_shown_and_disconnected(folders["a"], two.vhosts["a"], name)
    with pytest.raises(ConnectionClosed):
        leaves.queue("q1").publish(b"late", timeout=PATIENCE)
    follows = two.program()
    follows.declare_queue("q2", durable=True).publish(b"x", properties=TRACE, timeout=PATIENCE)
    assert two.orders("a", {"verb": "handover"}) == ""
    two["b"].becomes("live")
    follows.declare_queue("q3").publish(b"x", timeout=PATIENCE)
    with follows.queue("q2").get(timeout=PATIENCE) as message:
        assert dict(message.properties) == TRACE
    assert of_folder(folders["a"]) == []
    is_shown_and_disconnected(folders["b"], two.vhosts["b"], name)
