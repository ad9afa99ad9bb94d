"""Durable queues whose broker does not run: publishing says so, and what it leaves behind."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import shmbroker
from shmbroker.ipc.follower.replica import ReplicaGate
from shmbroker.ipc.queue.grouped import ASKED, ROUTES, SEPARATOR, TIMEOUT
from tests.cli.command import Shell, eventually, line_of
from tests.support.host import journaling

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def orders(shell: Shell) -> Shell:
    shell.does("queue", "declare", "orders", "--durable")
    shell.does("exchange", "declare", "all", "fanout")
    shell.does("bind", "all", "orders")
    return shell


def shown(shell: Shell) -> list[str]:
    browsed = shell.does("queue", "browse", "orders", "--unconfirmed", "--json").json
    return [message["body"] for message in browsed]


@pytest.mark.parametrize(
    "place", [["orders", "x"], ["--exchange", "all", "--confirm", "disk", "x"]], ids=str
)
def test_what_it_waits_for_is_said_after_a_second(
    orders: Shell, start: Start, place: list[str], tmp_path: Path
) -> None:
    process = start("pub", *place, stderr=subprocess.PIPE)
    said = line_of(process.stderr)
    assert b"waiting for the disk" in said
    assert b"no broker writes its journal" in said
    assert process.poll() is None
    with journaling(orders.vhost, tmp_path / "journal"):
        assert process.wait(60) == 0
    assert shown(orders) == ["x"]


def test_a_level_is_a_demand(orders: Shell, start: Start, tmp_path: Path) -> None:
    with journaling(orders.vhost, tmp_path / "journal"):
        orders.does("pub", "orders", "x", "--confirm", "disk")
        answer = orders("pub", "orders", "y", "--confirm", "replicated", "--timeout", "10ms")
        assert answer.code == 1
        assert "1 published, not confirmed" in answer.said
        assert "no replica is in sync" in answer.said
        process = start("pub", "orders", "z", "--confirm", "replicated", stderr=subprocess.PIPE)
        assert b"waiting for replicas" in line_of(process.stderr)
        broker = shmbroker.connect(f"shm://{orders.vhost}", name="replica")
        with broker, ReplicaGate(broker.queue("orders"), "far", from_now=True) as far:
            far.join()
            assert process.wait(60) == 0
            gates = orders.does("queue", "stat", "orders", "--json").json["gates"]
            assert [each["confirms"] for each in gates] == [True, True]
            assert "in the barrier" in orders.does("queue", "stat", "orders").out
    orders.does("queue", "declare", "plain")
    assert "is not durable" in orders("pub", "plain", "x", "--confirm", "replicated").said


def test_a_timeout_says_that_it_is_published(orders: Shell) -> None:
    answer = orders("pub", "orders", "x", "--timeout", "10ms")
    assert answer.code == 1
    assert "1 published, not confirmed" in answer.said
    assert "0 messages" not in answer.said
    lines = orders("pub", "orders", "--lines", "--timeout", "10ms", stdin=b"y\nz\n")
    assert "1 published, not confirmed" in lines.said
    assert shown(orders) == ["x", "y"]


def test_ctrl_c_says_that_it_is_published(orders: Shell, start: Start) -> None:
    process = start("pub", "orders", "x", stderr=subprocess.PIPE)
    eventually(lambda: shown(orders) == ["x"])
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"1 published, not confirmed" in said


def test_a_confirm_by_shared_memory_does_not_wait(orders: Shell, shell: Shell) -> None:
    assert (
        "1 message to queue 'orders'" in orders.does("pub", "orders", "x", "--confirm", "shm").said
    )
    orders.does("pub", "orders", "later", "--deliver-after", "1h", "--confirm", "shm")
    shell.does("queue", "declare", "plain")
    answer = shell("pub", "plain", "x", "--confirm", "disk")
    assert answer.code == 1
    assert "not durable" in answer.said


def test_a_scheduled_message_waits_for_the_disk(
    orders: Shell, start: Start, tmp_path: Path
) -> None:
    process = start("pub", "orders", "x", "--deliver-after", "1h", stderr=subprocess.PIPE)
    assert b"waiting for the disk" in line_of(process.stderr)
    with journaling(orders.vhost, tmp_path / "journal"):
        assert process.wait(60) == 0


def test_waiting_for_room_is_said(shell: Shell, start: Start) -> None:
    shell.does("queue", "declare", "full", "--slots", "2")
    shell.does("pub", "full", "--lines", stdin=b"a\nb\n")
    process = start("pub", "full", "c", stderr=subprocess.PIPE)
    assert b"waiting for room: queue 'full' is full" in line_of(process.stderr)
    shell.does("queue", "get", "full")
    assert process.wait(60) == 0
    assert shell.bodies("full") == ["b", "c"]


def test_waiting_for_the_node_of_a_group_is_said(shell: Shell, start: Start) -> None:
    """By a broker of a cluster that has not decided yet; here the test is the broker."""
    with shmbroker.connect(f"shm://{shell.vhost}") as broker:
        routes = broker.declare_queue(ROUTES, last_value=True, when_full="fail")
        broker.declare_queue(ASKED)
        orders = broker.declare_queue("orders", groups=True)
        routes.publish(b"60000", key=TIMEOUT)
        process = start("pub", "orders", "x", "--group", "anna", stderr=subprocess.PIPE)
        assert b"to which node its group goes" in line_of(process.stderr)
        routes.publish(b"orders", key=f"orders{SEPARATOR}anna", ttl=60)
        assert process.wait(60) == 0
        assert orders.receive(timeout=0) == b"x"


def test_a_producer_says_it_too(orders: Shell) -> None:
    arguments = ["producer", "--destination", "orders", "--timeout", "10ms", "--message-count", "2"]
    answer = orders(*arguments)
    assert answer.code == 1
    assert "1 published, the last not confirmed" in answer.said
    assert len(shown(orders)) == 1
    orders.does(*arguments, "--confirm", "shm")
