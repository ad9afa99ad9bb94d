"""Deadlines of many: the first is known, and nobody who is due is forgotten."""

from __future__ import annotations

import random

import pytest

from shmbroker.netbridge.link.deadlines import NEVER, STALE_MAX, Deadlines


class Member:
    def __init__(self, due: float = NEVER) -> None:
        self.due = due


@pytest.mark.parametrize("seed", range(20))
def test_it_says_what_asking_everybody_says(seed: int) -> None:
    """Times move to and fro, members come and go, the clock runs."""
    drawn = random.Random(seed)
    deadlines: Deadlines[Member] = Deadlines(lambda member: member.due)
    members = [Member() for _ in range(10)]
    now = 0.0
    for _ in range(500):
        member = drawn.choice(members)
        if drawn.random() < 0.1:
            deadlines.drop(member)
            member.due = NEVER
        else:
            member.due = drawn.choice([now + drawn.randrange(20), NEVER])
            deadlines.look(member)
        assert deadlines.first <= min(each.due for each in members)
        if drawn.random() < 0.3:
            now += drawn.randrange(5)
            due = [each for each in members if each.due <= now]
            late = deadlines.late(now)
            assert len(late) == len(due)
            assert set(late) == set(due)
            for each in late:
                each.due = now + 1 + drawn.randrange(20)
                deadlines.look(each)


def test_a_time_that_moves_on_with_traffic_costs_no_entry() -> None:
    deadlines: Deadlines[Member] = Deadlines(lambda member: member.due)
    member = Member(1.0)
    for _ in range(1000):
        member.due += 1.0
        deadlines.look(member)
    assert len(deadlines) == 1
    assert deadlines.late(500.0) == []
    assert deadlines.first == 1001.0


def test_those_who_have_gone_leave_nothing_behind() -> None:
    deadlines: Deadlines[Member] = Deadlines(lambda member: member.due)
    deadlines.look(Member(1.0))
    for number in range(10 * STALE_MAX):
        member = Member(2.0 + number)
        deadlines.look(member)
        deadlines.drop(member)
    assert len(deadlines) <= STALE_MAX + 3
    assert deadlines.first == 1.0
