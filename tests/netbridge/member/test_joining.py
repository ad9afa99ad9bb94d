"""A backup asks to follow, and its answer takes time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import pytest

from shmbroker.netbridge.member.action import Action, Tell
from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.member.options import MemberOptions
from shmbroker.netbridge.member.said import Hello, Join, Joined, NotJoined
from shmbroker.netbridge.member.standing import Past, Position, State

NODE = b"n" * 16
STEP = 0.1
LATE = 5.0
"""Seconds that an answer takes: longer than the pause between two joins."""


def backup() -> Member:
    machine = Member(MemberOptions("b", False), Past(), lambda position: True, boot="1", life="1",
                     now=0.0)  # fmt: skip
    machine.start(0.0)
    machine.peer_up("a", 0.0)
    return machine


def hello(*, serves: bool = True) -> Hello:
    return Hello(NODE, Position(1, "a", 7, 7), serves, 1, life="a1")


def joins(actions: Iterable[Action]) -> list[Join]:
    said = [each for each in actions if isinstance(each, Tell)]
    return [each.what for each in said if isinstance(each.what, Join)]


def said_by(machine: Member, until: float) -> list[tuple[float, Join]]:
    """Its joins, if nobody answers."""
    found, at = [], 0.0
    while at < until:
        at += STEP
        if at >= machine.deadline:
            found += [(at, each) for each in joins(machine.tick(at))]
    return found


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_live_that_answers_late_is_followed(is_refused: bool) -> None:
    """It takes one question after the other, and each answer is to one of long ago."""
    machine = backup()
    asked = deque(joins(machine.heard("a", hello(), 0.0)))
    at, is_free_at = 0.0, LATE
    while machine.state is not State.SYNCING:
        at += STEP
        assert at < 40 * LATE, "it asks again and again, and no answer is in time"
        if at >= machine.deadline:
            asked += joins(machine.tick(at))
        if asked and at >= is_free_at:
            stream, is_free_at = asked.popleft().stream, at + LATE
            answer = NotJoined("later", stream) if is_refused else Joined(1, False, stream)
            asked += joins(machine.heard("a", answer, at))
            if is_refused and machine.why == "a: later":
                return


def test_whom_it_has_asked_serves_no_more_and_another_is_asked_at_once() -> None:
    machine = backup()
    machine.peer_up("c", 0.0)
    machine.heard("a", hello(), 0.0)
    said_by(machine, 60.0)
    machine.heard("a", hello(serves=False), 60.0)
    assert joins(machine.heard("c", hello(), 60.1))


def test_a_lost_link_ends_the_long_pause() -> None:
    machine = backup()
    machine.heard("a", hello(), 0.0)
    said_by(machine, 60.0)
    machine.peer_down("a", 60.0)
    assert machine.deadline <= 60.0 + machine.options.retry_wait
    machine.peer_up("a", 60.1)
    assert joins(machine.heard("a", hello(), 60.2))
