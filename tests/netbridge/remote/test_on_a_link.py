"""Frames of sessions on links: those of programs carry them, others do not."""

from __future__ import annotations

from dataclasses import replace

from shmbroker.netbridge.link.action import Heard
from shmbroker.netbridge.link.ending import Reason
from shmbroker.netbridge.wire.frame import Attach, Seen
from shmbroker.netbridge.wire.words import Role
from tests.support.link_ends import WISH, pair

ATTACH = Attach(b"s" * 16, 1, 1, False, 0, 1000)


def test_a_link_of_a_program_carries_its_session() -> None:
    of = pair(wish=replace(WISH, role=Role.CLIENT)).connect()
    of.hears(of.near, of.near.say(ATTACH, 0.0))
    of.hears(of.far, of.far.say(Seen(0), 0.0))
    assert of.of(Heard, "far") == [Heard(ATTACH)]
    assert of.of(Heard) == [Heard(Seen(0))]


def test_a_link_between_brokers_does_not() -> None:
    of = pair().connect()
    of.hears(of.near, of.near.say(ATTACH, 0.0))
    assert [each.reason for each in of.endings()[1]] == [Reason.UNEXPECTED]


def test_nothing_is_said_before_the_link_is_up() -> None:
    of = pair(wish=replace(WISH, role=Role.CLIENT))
    assert of.near.say(ATTACH, 0.0) == []
