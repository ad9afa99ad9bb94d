"""Members that are offered to a plan of which all others have refused."""

from __future__ import annotations

import random

import pytest

from shmbroker.netbridge.discovery.entries import Entry
from shmbroker.netbridge.discovery.members import members_of
from shmbroker.netbridge.plan.action import ReadMembers
from shmbroker.netbridge.plan.plans import of_found
from shmbroker.netbridge.plan.state import State
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.wire.words import Refusal
from tests.support.plan_world import World, world


@pytest.mark.parametrize("refusal", [Refusal.SELF, Refusal.CREDENTIALS])
def test_who_is_offered_when_all_others_have_refused_is_tried_at_once(refusal: Refusal) -> None:
    one = World(of_found((), 60.0).plan(random.Random(1))).start()
    one.does |= {"a": refusal, "b": "up"}
    one.take(one.plan.offered((Single("a"),), one.now, was_read=True))
    one.wake()
    assert one.plan.state is State.REFUSED
    one.take(one.plan.offered((Single("a"), Single("b")), one.now, was_read=True))
    assert one.tried == ["a", "b"]
    assert one.plan.state is State.UP


def test_who_is_offered_while_it_is_stopped_is_not_tried() -> None:
    one = World(of_found((), 60.0).plan(random.Random(1))).start()
    one.does |= {"a": Refusal.SELF, "b": "up"}
    one.take(one.plan.offered((Single("a"),), one.now, was_read=True))
    one.wake()
    one.take(one.plan.stop(one.now))
    one.take(one.plan.offered((Single("b"),), one.now, was_read=True))
    assert one.tried == ["a"]


def test_a_list_of_which_all_have_refused_is_read_again() -> None:
    one = world("failover:(a)?update-uris-url=file:/m", a=Refusal.SELF, b="up").start()
    one.wake()
    assert len(one.of(ReadMembers)) == 2
    one.take(one.plan.offered((Single("b"),), one.now, was_read=True))
    assert one.tried == ["a", "b"]


def test_a_broker_is_no_member_of_those_that_it_finds() -> None:
    ours, theirs = (
        Entry(node * 16, "one", f"tcp://{host}:5000", is_live=True, epoch=1)
        for node, host in ((b"O", "here"), (b"T", "there"))
    )
    assert [each.host for each in members_of((ours, theirs), ours.node)] == ["there"]
    assert [each.host for each in members_of((ours, theirs))] == ["here", "there"]
