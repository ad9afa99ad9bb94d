"""Rows of SEMANTICS 3.3 and 3.4 with processes: losing a live, handing over, failing back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from shmbroker import Queue
from shmbroker.ipc.base.errors import DiskFull, Error, SystemRefused
from shmbroker.ipc.instance import reloading
from shmbroker.ipc.instance.config.config import FILE as CONFIG
from shmbroker.ipc.instance.whole import read_whole
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.netbridge.member.standing import Position
from shmbroker.netbridge.replica.applying import Applying
from shmbroker.netbridge.replica.aside import saved
from shmbroker.netbridge.replica.warm import Warm
from shmbroker.netbridge.replicated.checking import Checking
from shmbroker.netbridge.replicated.store import FILE
from shmbroker.netbridge.wire.words import ReplicaAck
from tests.netbridge.replicated.conftest import PASSWORD, PATIENCE, Made, Node
from tests.support.fall import falls_when

MANY = [b"%d" % number for number in range(10)]

JOINS: dict[str, object] = {
    "ha.replication.check-for-live-server": True,
    "ha.allow-failback": False,
}
"""Whoever comes back looks for a live first, and stays a backup."""


def filled(node: Node, name: str = "a") -> Queue:
    orders = node.connected(name).declare_queue("orders", durable=True)
    for body in MANY:
        orders.publish(body, timeout=PATIENCE)
    return orders


def test_a_fresh_live_serves_and_a_backup_joins(node: Made) -> None:
    two = node().up()
    orders = filled(two)
    assert orders.confirm(timeout=PATIENCE) == "disk+replicated"
    assert two["a"].status.state == "live"
    assert two["b"].status.state == "passive"
    assert two["b"].status.is_announced


def test_live_crashes(node: Made) -> None:
    two = node().up()
    filled(two)
    two["a"].kill()
    two["b"].becomes("live")
    assert two.bodies("b") == MANY
    assert two["b"].status.epoch == 2
    two.says("b", "alone")


def test_live_crashes_and_its_death_is_proven(node: Made) -> None:
    """On one host the kernel tells of it, so nothing has to be said of partitions."""
    two = node({"ha.replication.on-partition": "stop-confirming"}).up()
    filled(two)
    two["a"].kill()
    two["b"].becomes("live")
    assert two.bodies("b") == MANY


def test_a_live_without_its_network_thread_has_failed_and_its_backup_serves(node: Made) -> None:
    made = node()
    file = made["a"].folder / "fall"
    made["a"].before = partial(falls_when, file)
    made.up()
    file.touch()
    assert made["a"].ends() == 1
    assert "the network thread has ended" in made["a"].why("failed")
    made["b"].becomes("live")


def test_live_stops_gracefully_with_the_replica_in_sync(node: Made) -> None:
    two = node({"ha.replication.on-partition": "stop-confirming"}).up()
    filled(two)
    assert two["a"].stop() == 0
    two["b"].becomes("live")
    assert two.bodies("b") == MANY
    assert "handed over" in two["a"].events()


def test_a_backup_that_is_stopped_leaves_no_rings(node: Made) -> None:
    two = node().up()
    filled(two)
    assert vhosts.exists(two.vhosts["b"])
    assert two["b"].stop() == 0
    assert not vhosts.exists(two.vhosts["b"])
    two["b"].start()
    two.says("b", "in sync")


def test_stop_no_handover_parks_the_group(node: Made) -> None:
    two = node().up()
    filled(two)
    assert two.orders("a", {"verb": "stop"}) == ""
    assert two["a"].ends() == 0
    two.says("b", "parked")
    two["a"].start().becomes("live")
    two.says("b", "in sync")
    assert two.bodies("a") == MANY


def test_a_parked_group_is_activated(node: Made) -> None:
    two = node().up()
    filled(two)
    two.orders("a", {"verb": "stop"})
    two["a"].ends()
    two.says("b", "parked")
    assert two.orders("b", {"verb": "activate"}) == ""
    two["b"].becomes("live")
    assert two.bodies("b") == MANY


def cannot_open_a_file_once() -> None:
    """In this process: when it looks up where a replica's journal ends."""
    has = Checking._has

    def refused(checking: Checking, last: Position) -> bool:
        Checking._has = has  # type: ignore[method-assign]
        raise SystemRefused("too many open files")

    Checking._has = refused  # type: ignore[method-assign]


def test_a_backup_whose_journal_could_not_be_compared_comes_again_and_keeps_it(node: Made) -> None:
    two = node({"ha.replication.check-for-live-server": True})
    two["a"].before = cannot_open_a_file_once
    filled(two.up())
    two["b"].kill()
    two.says("a", "alone")
    two["b"].start()
    two.says("b", "in sync")
    assert saved(two["b"].folder / "data") == []
    assert "too many open files" in two["a"].why("warning")


def tells_nothing_unasked() -> None:
    """In this process, of what was applied: as the thread that has synced may be late."""
    init = Applying.__init__

    def quiet(
        applying: Applying,
        warm: Warm,
        remake: Callable[[], Warm],
        ack: ReplicaAck,
        news: Callable[[], None],
        failed: Callable[[Error], None],
    ) -> None:
        init(applying, warm, remake, ack, lambda: None, failed)

    Applying.__init__ = quiet  # type: ignore[method-assign,assignment]


def test_a_backup_hears_that_its_live_has_stopped_before_it_knows_that_the_group_is_parked(
    node: Made,
) -> None:
    two = node()
    two["b"].before = tells_nothing_unasked
    two.up()
    assert two.orders("a", {"verb": "stop"}) == ""
    assert two["a"].ends() == 0
    two.says("b", "parked")


def has_no_room_while(flag: Path) -> None:
    """In this process: what comes is not written."""
    apply = Applying._apply

    def applies(applying: Applying, frames: bytes, eventfd: int) -> None:
        if flag.exists():
            raise DiskFull("no space left on device")
        apply(applying, frames, eventfd)

    Applying._apply = applies  # type: ignore[method-assign,assignment]


def test_a_backup_whose_disk_was_full_goes_on_with_what_it_has(node: Made, tmp_path: Path) -> None:
    """It ends, its live goes on alone, and when there is room it asks for what it does not have."""
    flag = tmp_path / "full"
    two = node(JOINS)
    two["b"].before = partial(has_no_room_while, flag)
    orders = filled(two.up())
    flag.touch()
    orders.publish(b"one more", timeout=PATIENCE)
    assert two["b"].ends() == 1
    assert "no space left" in two["b"].why("failed")
    store = two["b"].folder / "data"
    assert read_whole(store / FILE)["whole"]
    two.says("a", "alone")
    flag.unlink()
    two["b"].start()
    two.says("b", "in sync")
    assert not saved(store), "nothing was set aside"
    assert two.orders("a", {"verb": "handover"}) == ""
    two["b"].becomes("live")
    assert two.bodies("b") == [*MANY, b"one more"]


def test_whoever_hands_over_joins_the_one_that_hears_more_of_it_while_it_applies(
    node: Made,
) -> None:
    """What follows nothing any more calls nobody back: the other's join waited behind for ever."""
    two = node(JOINS)
    for name in ("a", "b"):
        two[name].before = tells_nothing_unasked
    two.up()
    for live, other in (("a", "b"), ("b", "a")):
        assert two.orders(live, {"verb": "handover"}) == ""
        two[other].becomes("live")
        two.says(live, "in sync")


def test_backup_stops_gracefully(node: Made) -> None:
    two = node({"ha.replication.on-partition": "stop-confirming"}).up()
    orders = filled(two)
    assert two["b"].stop() == 0
    two.says("a", "alone")
    orders.publish(b"alone", timeout=PATIENCE)
    assert orders.level == "disk"
    two["b"].start()
    two.says("a", "in sync")
    two.says("b", "in sync")
    orders.publish(b"again", timeout=PATIENCE)
    assert orders.confirm(timeout=PATIENCE) == "disk+replicated"


def test_a_backup_that_cannot_go_on_copies_all(node: Made) -> None:
    """A message larger than a segment leaves a serial out: perhaps a segment is missing."""
    two = node().up()
    orders = filled(two)
    assert two["b"].stop() == 0
    two.says("a", "alone")
    large = bytes(2 << 20)
    orders.publish(large, timeout=PATIENCE)
    two["b"].start()
    two.says("b", "in sync")
    assert two["a"].stop() == 0
    two["b"].becomes("live")
    assert two.bodies("b") == [*MANY, large]


def test_backup_crashes(node: Made) -> None:
    two = node().up()
    orders = filled(two)
    two["b"].kill()
    two.says("a", "alone")
    orders.publish(b"alone", timeout=PATIENCE)
    assert orders.level == "disk"
    assert two["a"].status.epoch == 2
    two["b"].start()
    two.says("a", "in sync")
    two["a"].kill()
    two["b"].becomes("live")
    assert two.bodies("b") == [*MANY, b"alone"]
    assert two["b"].status.epoch == 3


def test_wrong_password_on_a_backup(node: Made) -> None:
    two = node(b={"credentials.members.password": "not the same as the other"})
    two["a"].start().becomes("live")
    two["b"].start()
    two.says("b", "refused")
    two.says("a", "alone")


def test_failback(node: Made) -> None:
    two = node({"ha.replication.check-for-live-server": True}).up()
    filled(two)
    two["a"].kill()
    two["b"].becomes("live")
    orders = two.connected("b").queue("orders")
    orders.publish(b"meanwhile", timeout=PATIENCE)
    with orders.get(timeout=PATIENCE) as message:
        assert message.body == MANY[0]
        assert message.redelivered
    orders.publish(b"the last", timeout=PATIENCE)
    two["a"].start().becomes("live")
    two.says("b", "in sync")
    assert two.bodies("a") == [*MANY[1:], b"meanwhile", b"the last"]
    assert {"failback agreed", "handed over"} <= set(two["b"].events())
    assert "failback asked" in two["a"].events()


def test_no_failback_where_it_is_not_allowed(node: Made) -> None:
    two = node({"ha.replication.check-for-live-server": True, "ha.allow-failback": False}).up()
    two["a"].kill()
    two["b"].becomes("live")
    two["a"].start()
    two.says("a", "in sync")
    assert two["b"].status.state == "live"


def test_handover_on_demand_and_back(node: Made) -> None:
    two = node().up()
    filled(two)
    for name, other in (("a", "b"), ("b", "a"), ("a", "b")):
        assert two.orders(name, {"verb": "handover"}) == ""
        two[other].becomes("live")
        two.says(name, "in sync")
        assert two.bodies(other) == MANY
    assert not list((two["a"].folder / "data").glob("oldreplica.*")), "the tail was enough"


def test_programs_are_told_where_a_handover_takes_them(node: Made) -> None:
    two = node().up()
    program = two.program()
    orders = program.declare_queue("orders", durable=True)
    told: list[tuple[str, str]] = []
    program.on_event(lambda event, detail: told.append((event, detail)))
    for name, other in (("a", "b"), ("b", "a")):
        told.clear()
        assert two.orders(name, {"verb": "handover"}) == ""
        orders.publish(b"x", timeout=PATIENCE)
        events = [str(event.value) for event, _ in told]
        assert events == ["moving", "failure-detected", "failover-completed"]
        assert str(two.ports[other]) in told[0][1]
        two.says(name, "in sync")


def test_a_remote_client_fails_over_and_loses_nothing(node: Made) -> None:
    two = node(JOINS).up()
    program = two.program()
    orders = program.declare_queue("orders", durable=True)
    sent = []
    for number in range(60):
        if number == 20:
            two["a"].kill()
        if number == 40:
            two["a"].start()
            two.says("a", "in sync")
            two.orders("b", {"verb": "handover"})
        sent.append(b"%d" % number)
        orders.publish(sent[-1], timeout=PATIENCE)
    two["a"].becomes("live")
    assert two.bodies("a") == sent


@pytest.mark.parametrize("cycles", [4])
def test_many_cycles_of_failover(node: Made, cycles: int) -> None:
    two = node(JOINS).up()
    filled(two)
    expected = list(MANY)
    lives = ["a", "b"] * cycles
    for live, other in pairwise(lives):
        two[live].kill()
        two[other].becomes("live")
        expected.append(f"after {live}".encode())
        two.connected(other).queue("orders").publish(expected[-1], timeout=PATIENCE)
        two[live].start()
        two.says(live, "in sync")
        two.says(other, "in sync")
        assert two.bodies(other) == expected


def test_members_find_each_other_by_a_password_that_was_changed_while_they_ran(node: Made) -> None:
    """Links that are there go on; the next ones go by the new password, whoever listens."""
    two = node(JOINS).up()
    filled(two)
    for name in ("a", "b"):
        file = two[name].folder / CONFIG
        file.write_text(file.read_text().replace(PASSWORD, "a newer password"))
        answer = reloading.asked(two[name].folder, PATIENCE)
        assert answer is not None
        assert "credentials.members.password" in answer["applied"]
        assert "replica lost" not in two["a"].events()
    two["b"].kill()
    two.says("a", "alone")
    two["b"].start()
    two.says("b", "in sync")
    two["a"].kill()
    two["b"].becomes("live")
    two["a"].start()
    two.says("a", "in sync")
    assert two.bodies("b") == MANY


def test_signals_reach_what_a_command_of_on_promote_begins(node: Made) -> None:
    """Else `timeout`, or a kill, does not end it, and the member waits for it."""
    blocks = "import signal, sys; sys.exit(len(signal.pthread_sigmask(signal.SIG_BLOCK, ())))"
    two = node(JOINS, b={"ha.on-promote": [[sys.executable, "-c", blocks]]}).up()
    two["a"].kill()
    two["b"].becomes("live")
