"""Rows of SEMANTICS 3.5 with processes: who may serve after a start."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace

import pytest

from shmbroker import Unconfirmed
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.netbridge.replicated import options
from shmbroker.netbridge.replicated.instance import ReplicatedInstance
from tests.netbridge.replicated.conftest import PATIENCE, Made
from tests.netbridge.replicated.test_losing import MANY, filled

STOP_CONFIRMING: dict[str, object] = {"ha.replication.on-partition": "stop-confirming"}


def test_fresh_backup_without_a_live_joins_for_ever(node: Made) -> None:
    two = node()
    two["b"].start()
    two.says("b", "joining")
    two["b"].kill()  # it has no node yet
    two["b"].start()
    two.says("b", "joining")
    assert two["b"].stop() == 0
    two["b"].start()
    two.says("b", "joining")
    two["a"].start().becomes("live")
    two.says("b", "in sync")


def test_a_member_that_was_live_alone_serves(node: Made) -> None:
    two = node(STOP_CONFIRMING)
    two["a"].start().becomes("live")
    filled(two)
    two["a"].kill()
    two["a"].start().becomes("live")
    assert two.bodies("a") == MANY


def test_a_member_that_was_stopped_alone_serves(node: Made) -> None:
    two = node(STOP_CONFIRMING)
    two["a"].start().becomes("live")
    filled(two)
    assert two["a"].stop() == 0
    two["a"].start().becomes("live")
    assert two.bodies("a") == MANY


def test_a_member_that_had_a_partner_in_sync_is_held(node: Made) -> None:
    two = node(STOP_CONFIRMING).up()
    filled(two)
    two.are_killed("b", "a")
    two["a"].start()
    two.says("a", "held: waits for b")
    two["b"].start()  # both back: the newest serves
    for name in ("a", "b"):
        two.says(name, "in sync")
    live = next(name for name in ("a", "b") if two[name].status.state == "live")
    assert two.bodies(live) == MANY


def test_both_back_after_a_crash_of_both(node: Made) -> None:
    two = node(STOP_CONFIRMING).up()
    filled(two)
    two.are_killed("a", "b")
    for name in ("a", "b"):
        two[name].start()
    for name in ("a", "b"):
        two.says(name, "in sync")
    states = sorted(two[name].status.state for name in ("a", "b"))
    assert states == ["live", "passive"]


def test_a_stale_live_does_not_start(node: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """check-for-live-server is false: documented; elsewhere it would start and deliver twice."""
    two = node(a={"ha.role": "live"}, b={"ha.role": "backup"}).up()
    filled(two)
    two["a"].kill()
    two["b"].becomes("live")
    monkeypatch.setattr("shmbroker.netbridge.member.core.LOOK_SECONDS", PATIENCE)
    two["a"].start()
    assert two["a"].ends() == 1
    assert two["a"].status.why.startswith("stale: b serves epoch 2")


def test_newest_lost_for_good(node: Made) -> None:
    two = node(STOP_CONFIRMING).up()
    filled(two)
    two.are_killed("b", "a")
    two["b"].start()
    two.says("b", "held")
    assert "--force" not in two.orders("b", {"verb": "activate", "force": True, "user": "me"})
    two["b"].becomes("live")
    assert two.bodies("b") == MANY
    audit = next(line for line in two["b"].said() if line["event"] == "audit")
    assert (audit["verb"], audit["user"]) == ("activate", "me")
    assert (audit["epoch"], audit["then"]) == (1, 2)
    with two.connected("b").queue("orders").get(timeout=PATIENCE) as message:
        assert message.redelivered


def test_a_preferred_member_with_a_new_disk_founds_no_node_beside_a_held_one(node: Made) -> None:
    patient = {"link-defaults.connect-timeout": "30s"}  # it founds one if it meets nobody by then
    two = node({**STOP_CONFIRMING, "ha.allow-failback": False, **patient}).up()
    filled(two)
    two.are_killed("a", "b")
    vhosts.delete(two.vhosts["a"], force=True)
    shutil.rmtree(two["a"].folder / "data")
    two["b"].start()
    two.says("b", "held: waits for a")
    two["a"].start()
    two.says("a", "held: b has a node (epoch 1)")
    two.says("b", "held: waits for a (epoch 1); the journal of a is not of this node")
    assert two.orders("b", {"verb": "activate", "force": True, "user": "me"}) == ""
    two["b"].becomes("live")
    two.says("a", "in sync")
    assert two.bodies("b") == MANY


def test_a_preferred_member_without_its_journal_is_no_new_one(node: Made) -> None:
    """Its store says that it had one."""
    two = node(STOP_CONFIRMING).up()
    filled(two)
    two.are_killed("a", "b")
    shutil.rmtree(two["a"].folder / "data" / "journal")
    two["a"].start()
    two.logs("a", "warning")
    two.says("a", "joining")
    assert "is gone: it copies all" in two["a"].why("warning")


QUICK = STOP_CONFIRMING | {"link-defaults.heartbeat-interval": "300ms"}


def stopped_as_it_begins() -> None:
    """In this process."""
    begin = ReplicatedInstance._begin

    def begins(self: ReplicatedInstance) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        begin(self)

    ReplicatedInstance._begin = begins  # type: ignore[method-assign]


def test_who_is_stopped_as_it_starts_begins_and_ends_in_good_order(node: Made) -> None:
    two = node()
    two["a"].before = stopped_as_it_begins
    assert two["a"].start().ends() == 0
    assert two["a"].status.state == "stopped"


def one_frame_in_flight() -> None:
    """In this process: with one more, a replica has as much in flight as it may have."""
    terms = options.terms
    options.terms = lambda found: replace(terms(found), in_flight=0)


def test_stop_confirming_suspends_and_ha_continue_goes_on(node: Made) -> None:
    two = node(QUICK)
    two["a"].before = one_frame_in_flight  # what comes while it is suspended is too much
    orders = filled(two.up())
    two.stands_still("b")
    two.says("a", "suspended")
    try:
        orders.publish(b"suspended", timeout=0.3)
    except Unconfirmed as error:
        unconfirmed = error
    else:
        raise AssertionError("it was confirmed")
    assert two.orders("a", {"verb": "continue", "user": "me"}) == ""
    two.says("a", "alone")
    unconfirmed.confirm(timeout=PATIENCE)
    assert orders.level == "disk"
    assert two["a"].status.epoch == 2
    two.goes_on("b")
    two.says("a", "in sync")


def test_a_suspended_live_goes_on_when_its_replica_is_back(node: Made) -> None:
    two = node(QUICK).up()
    orders = filled(two)
    two.stands_still("b")
    two.says("a", "suspended")
    two.goes_on("b")
    two.says("a", "in sync")
    orders.publish(b"again", timeout=PATIENCE)
    assert orders.confirm(timeout=PATIENCE) == "disk+replicated"
    assert two["a"].status.epoch == 1


def test_a_live_alone_has_its_pages_again(node: Made) -> None:
    two = node(STOP_CONFIRMING)
    two["a"].start().becomes("live")
    large = two.connected("a").declare_queue("large", durable=True, slots=64, when_full="page")
    bodies = [b"%d" % number + bytes(4096) for number in range(300)]
    for body in bodies:
        large.publish(body, timeout=PATIENCE)
    two["a"].kill()
    two["a"].start().becomes("live")
    again = two.connected("a").queue("large")
    taken = []
    for _ in bodies:
        message = again.get(timeout=PATIENCE)
        taken.append(message.body)
        message.ack()
    assert taken == bodies
